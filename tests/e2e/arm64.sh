# SPDX-License-Identifier: Apache-2.0
# heaptap for aarch64, by qemu's user mode: what needs no kernel of that architecture. It has no perf events, and what it
# executes is of this machine.

[ -n "${HEAPTAP_ARM64:-}" ] || skip "not built for aarch64: Debian's packages for arm64 cannot be had here, or a pattern left it out"
command -v qemu-aarch64 >/dev/null || skip 'no qemu-aarch64 (package qemu-user)'

arm64() {
  qemu-aarch64 -cpu max,pauth-impdef=on -L "$HEAPTAP_ARM64" "$HEAPTAP_BUILD-arm64/heaptap" "$@"
}

# What is for x86-64 only is refused by its name, and nothing else chooses it.
test_what_is_refused() {
  equal 0 "$(status_of arm64 record -b walk -o x.pb.gz sh -c 'echo runs')" "$(cat err)"
  equal runs "$(cat out)"
  matches '^heaptap: backend walk is not available: it is for x86-64 only$' err
  matches '^heaptap: sh runs without being profiled$' err
  [ ! -e x.pb.gz ] || fail 'a profile of nothing'
  status_of arm64 record -v -o x.pb.gz true >status
  matches '^heaptap: stacks by copy, ' err
  ! grep -q walked err || fail "$(cat err)"
  sleep 1000 &
  target=$!
  equal 1 "$(status_of arm64 record -P $target -o x.pb.gz)"
  matches "^heaptap: the heap of a process that runs already cannot be recorded here: that works on x86-64 alone, .*; start it with 'heaptap record COMMAND'\$" err
  status_of arm64 doctor $target >status
  matches 'cannot be attached to: that works on x86-64 alone' out
  matches '^ok +kernel [0-9.]+.* on aarch64$' out
  kill $target
}

# Files are read alike.
test_a_profile_of_another_machine() {
  record -q -p 1 -o x.pb.gz "$targets/leaky" 300 64
  for command in 'report --tree' 'report' 'check'; do
    "$heaptap" $command x.pb.gz >here
    arm64 $command x.pb.gz >there
    cmp here there || { diff here there >&2; fail "$command"; }
  done
}
