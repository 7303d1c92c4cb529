# SPDX-License-Identifier: Apache-2.0
# `heaptap adopt` as root believes nothing of what the target says about its library.
# timeout: 60

sampler_of() {
  ps -o pid=,comm= --ppid "$1" | awk '$2 == "heaptap-sampler" || $2 == "heaptap" {print $1}' | head -n 1
}

# adopt_orphan RECORDER ADOPTER TARGET...: uid 65534 starts TARGET under RECORDER; that one's sampler is killed, and root
# has ADOPTER adopt it. Sets front and adopter.
adopt_orphan() {
  local recorder=$1 adopting=$2 sampler target
  shift 2
  setpriv --reuid 65534 --regid 65534 --clear-groups --inh-caps=-all "$recorder" record -q -b copy -o first/ "$@" &
  front=$!
  wait_for 20 test -e ready
  sampler=$(sampler_of $front)
  target=$(child_of $front "$(basename "$1")")
  [ -n "$sampler" ] && [ -n "$target" ] || fail "no sampler or no target"
  kill -KILL "$sampler"
  gone() { ! kill -0 "$sampler" 2>/dev/null; }
  wait_for 10 gone
  "$adopting" adopt -v -o "$PWD/second/" "$target" 2>adopt.log &
  adopter=$!
  wait_for 20 grep -q adopted adopt.log
}

finish() {
  touch go
  wait $front || true
  wait $adopter || fail "$(cat adopt.log)"
}

test_no_probe_in_a_file_that_the_target_names() {
  need_root
  stage trust_adopt
  equal 42 "$("$targets/trust_adopt" answer)" 'answer() before'
  adopt_orphan "$heaptap" "$heaptap" "$targets/trust_adopt" forge
  during=$("$targets/trust_adopt" answer)
  finish
  equal 42 "$during" "answer() of root's own process while the forger is adopted"
  matches 'adopted, backend copy' adopt.log
}

# adopt_copy MODE: the target has loaded a copy of the adopter's library, with that mode, of root
adopt_copy() {
  stage outlive
  cp -r bin copy
  chmod "$1" copy/libheaptap.so
  adopt_orphan "$PWD/copy/heaptap" "$heaptap" "$targets/outlive"
  finish
}

test_the_same_library_at_another_place() {
  need_root
  adopt_copy 755
  matches 'adopted, backend uprobe' adopt.log
}

test_a_copy_that_others_may_write() {
  need_root
  adopt_copy 777
  matches 'adopted, backend copy' adopt.log
}
