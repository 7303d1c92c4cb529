# SPDX-License-Identifier: Apache-2.0
# Where the kernel refuses memory at the first store (vm.overcommit_memory=2) nothing is profiled, and that is said. The
# machine's own setting stays as it is: the programs see another file in its place.

# strictly COMMAND...: in a mount namespace of its own
strictly() {
  echo 2 >two
  # shellcheck disable=SC2016
  unshare -m sh -c 'mount --bind two /proc/sys/vm/overcommit_memory || exit 78; exec "$@"' sh "$@"
}

able() {
  need_root
  strictly true 2>err || skip "no mount namespace: $(cat err)"
}

test_recorded() {
  able
  strictly "$heaptap" record -p 1 -o p/ "$targets/truth" /dev/null 1 0 2>err || fail "status $?: $(cat err)"
  matches 'no profile of .*truth: .*vm.overcommit_memory' err
  matches 'not profiled: 1 program: .*vm.overcommit_memory' err
}

# maps COMMAND...: how many mappings of ours a program has that starts with our library and no session
maps() {
  LD_PRELOAD=$HEAPTAP_PROGRAMS/libheaptap.so "$@" grep -c 'memfd:heaptap' /proc/self/maps
}

test_offered() {
  able
  at_least 1 "$(maps)" 'mappings as it is usually'
  equal 0 "$(maps strictly)" 'mappings'
}

test_doctor() {
  able
  strictly "$heaptap" doctor >out 2>&1 || :
  matches 'vm.overcommit_memory is 2' out
  "$heaptap" doctor >out 2>&1 || :
  [ "$(cat /proc/sys/vm/overcommit_memory)" = 2 ] || ! grep overcommit out || fail 'said where it is not so'
}
