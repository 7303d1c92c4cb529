# SPDX-License-Identifier: Apache-2.0
# Programs that have unmasked floating-point exceptions, round in another direction, or look at flags (capture_float.c).

library=$HEAPTAP_PROGRAMS/libheaptap.so

# as_alone MODE: it ends as it does alone, while intervals are drawn and blocks weighed, and what is sampled is no more or
# less than it has allocated, by 6 standard errors of blocks that are as large as the largest.
as_alone() {
  local status
  status=$(status_of "$targets/capture_float" "$1")
  [ "$status" != 77 ] || skip "not possible here: $1"
  equal 0 "$status" native
  for backend in copy auto; do
    equal 0 "$(status_of "$heaptap" record -q -b $backend -p 4K -o "$backend.pb.gz" "$targets/capture_float" "$1")" "$1 by $backend"
    profile_check $backend.pb.gz
    read -r _ objects bytes <out
    at_least 100 "$(comment_of $backend.pb.gz | sed -n 's/^samples: \([0-9]*\) taken.*/\1/p')" samples
    awk -v bytes="$bytes" -v got="$(total_of $backend.pb.gz alloc_space)" 'BEGIN {
      off = (got - bytes) / sqrt(bytes * 9016); printf "%d bytes of %d, %.1f\n", got, bytes, off; exit !(off < 6 && off > -6) }' ||
      fail "$1 by $backend"
  done
}

test_exceptions_unmasked() { as_alone traps; }

test_rounding_in_another_direction() { as_alone rounding; }

test_flags() { as_alone flags; }

# The library computes in two functions, which take care of the environment; nothing of the kind is anywhere else in it.
test_nothing_else_computes() {
  [ "$(uname -m)" = x86_64 ] || skip 'x86-64 only'
  objdump -d --no-show-raw-insn "$library" | awk '
    /^[0-9a-f]+ <.*>:$/ { name = $2 }
    $2 ~ /^v?((add|sub|mul|div|sqrt|min|max)[sp][sd]|u?comis[sd]|cvt.*)$/ { print name }' | sort -u >found
  matches '^<weigh>:$' found
  equal '' "$(grep -vE '^<weigh(_interval)?(\.[a-z0-9.]*)?>:$' found || :)" 'others that compute'
}
