# SPDX-License-Identifier: Apache-2.0
# Programs that lock all of their memory: they get what they ask for, and not our tables besides.

# by COMMAND...: runs lock_all with it in front, natively and with our library, for all flags of mlockall. What it prints
# must be the same, and what is resident nearly.
by() {
  for flags in 1 2 3 4 5 7 8; do
    "$@" "$targets/lock_all" $flags >native
    rm -rf p
    "$heaptap" record -q -o p/ -- "$@" "$targets/lock_all" $flags >recorded 2>err || { cat err; fail "flags $flags"; }
    LD_PRELOAD=$HEAPTAP_PROGRAMS/libheaptap.so "$@" "$targets/lock_all" $flags >offered
    for how in recorded offered; do
      equal "$(grep -v resident native)" "$(grep -v resident $how)"
      at_most $(($(awk '/^resident/ { print $2 }' native) + 16384)) "$(awk '/^resident/ { print $2 }' $how)" "KiB resident, $how"
    done
  done
}

test_without_limit() {
  need_root
  by env A=1
  grep -q '^result 0 77$' native || grep -q '^result -1 22$' native || fail "$(cat native)"
}

# 64 MiB, or what there is: more than the program has, less than we have.
test_limit() {
  need_root
  ulimit -l 65536 2>/dev/null || ulimit -l 8192 || skip "cannot set the limit of locked memory"
  chmod 777 .
  by setpriv --reuid "$other_user" --clear-groups
}
