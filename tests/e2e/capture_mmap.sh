# SPDX-License-Identifier: Apache-2.0
# record --mmap: a program that knows what it has mapped (tests/targets/mappings.c) against its profile.

# same PROFILE: each function of truth.tsv, exactly, under [mmap]
same() {
  profile_check "$1"
  while IFS=$'\t' read -r function objects bytes live live_bytes; do
    reached_exactly "$1" "$function" "alloc_objects $objects" "alloc_space $bytes" "inuse_objects $live" "inuse_space $live_bytes"
    pprof_top "$1" -sample_index=alloc_space -focus="^$function\$" >top
    # nothing of it is anywhere but under the leaf
    awk -v bytes="$bytes" '$NF == "[mmap]" { found = 1 } END { exit !found && bytes > 0 }' top || { cat top >&2; fail "no [mmap]"; }
  done <truth.tsv
}

backends() {
  [ "$(id -u)" != 0 ] || echo uprobe
  echo breakpoint copy
}

test_every_shape_exactly() {
  for backend in $(backends); do
    record -q --mmap -b "$backend" -p 1 -o x.pb.gz "$targets/mappings" truth.tsv shapes
    same x.pb.gz
    "$readers/oracle" -reach '^shapes$' x.pb.gz >reach
  done
  go tool pprof -raw x.pb.gz 2>/dev/null | grep -q 'alloc_fn:\[mmap\]' || fail 'rows of mappings have no label'
}

test_off_by_default() {
  record -q -b copy -p 1 -o x.pb.gz "$targets/mappings" truth.tsv shapes
  profile_check x.pb.gz
  "$readers/oracle" -reach '^(take|take_over|take_grow|commit)$' x.pb.gz | awk -F '\t' '$1 == "reach" && $3 > 0 { exit 1 }' ||
    fail 'mappings are recorded'
}

test_with_threads_exactly() {
  record -q --mmap -b copy -p 1 -o x.pb.gz "$targets/mappings" truth.tsv many 200 4
  same x.pb.gz
}

# Threads that cut the same mappings to pieces at the same time.
test_concurrent_unmapping_exactly() {
  for _ in 1 2; do
    record -q --mmap -b copy -p 1 -o x.pb.gz "$targets/mappings" truth.tsv shared 8
    same x.pb.gz
  done
}

test_inherited_mappings() {
  record -q --mmap -b copy -p 1 -o %p.pb.gz "$targets/mappings" truth.tsv fork
  for profile in *.pb.gz; do
    ! go tool pprof -raw "$profile" 2>/dev/null | grep -q 'inherited:\[yes\]' || child=$profile
  done
  same "$child"
}

# Five and a half standard errors, once in 26 million runs: 20,000 mappings of 1 MiB in the mean. Half a percent more is for what rounding does to the truth.
test_within_standard_errors_at_the_default_period() {
  record -q --mmap -b copy -o x.pb.gz "$targets/mappings" truth.tsv many 5000 4
  profile_check x.pb.gz
  read -r bytes live_bytes < <(awk -F '\t' '{ print $3, $5 }' truth.tsv)
  awk -v want="$bytes" -v got="$(total_of x.pb.gz alloc_space)" 'BEGIN { d = got / want - 1; exit !(d < 0.05 && d > -0.05) }' ||
    fail "alloc_space: truth $bytes, profile $(total_of x.pb.gz alloc_space)"
  comment_of x.pb.gz | sed -n 's/^in use: \([0-9]*\) +- \([0-9]*\) bytes.*/\1 \2/p' >estimate
  awk -v want="$live_bytes" '{ d = $1 - want; if (d < 0) d = -d; exit !(d < 5.5 * $2 + want / 200) }' estimate ||
    fail "inuse_space: truth $live_bytes, profile $(cat estimate)"
}

# What an allocator maps is what its blocks are made of.
test_allocators_own_mappings_are_not_counted() {
  for name in libjemalloc.so.2 libtcmalloc_minimal.so.4 libmimalloc.so.2; do
    preload=$(ldconfig -p | awk -v name=$name '$1 == name { print $NF; exit }')
    [ -n "$preload" ] || skip "$name is not installed"
    LD_PRELOAD=$preload record -q --mmap -b copy -p 1 -o x.pb.gz "$targets/truth" truth.tsv 10 0
    profile_check x.pb.gz
    ! pprof_top x.pb.gz -sample_index=alloc_space | grep -F '[mmap]' || fail "$name: its own mappings are in the profile"
  done
}
