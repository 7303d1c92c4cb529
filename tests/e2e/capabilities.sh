# SPDX-License-Identifier: Apache-2.0
# A sampler that is not root, and programs that may not open what lies in its /proc/PID/fd: it has capabilities that they
# have not, or they are in a user namespace.

. "$HEAPTAP_TOP/tests/serve.sh"

# From here on $heaptap has a capability, as somebody may have given it one for larger perf buffers.
with_a_capability() {
  need_root
  setcap cap_ipc_lock+ep "$heaptap" 2>/dev/null || skip 'files can have no capabilities here'
  "${user[@]}" "$heaptap" doctor | grep -q CAP_IPC_LOCK || skip 'capabilities of files have no effect here'
}

test_a_sampler_with_capabilities() {
  local path
  with_a_capability
  program a -p 1 -b copy
  tell a 'hold 100'
  path=$("${user[@]}" "$heaptap" snapshot "$(cat a.pid)") || fail 'no snapshot'
  profile_check "$path"
  equal 100000 "$("$readers/oracle" -reach '^take_held$' "$path" | awk -F '\t' '$1 == "reach" && $2 ~ /^inuse_space/ { print $3 }')" 'in use'
  serve
  equal 200 "$(fetch /debug/pprof/heap)" "$(head -c 300 body)"
  finish a
  profile_check a/*.pb.gz
}

# To execute a file that has capabilities cancels the signal at the parent's end.
test_a_cpu_profile_ends_without_its_sampler() {
  local sampler client child
  with_a_capability
  program a -p 1M -b copy
  serve
  curl -s -o /dev/null "$url/debug/pprof/profile?seconds=2" &
  client=$!
  sampler=$(sampler_of "$(cat a.front)")
  sampled() { child=$(child_of "$sampler" exe) && [ -n "$child" ]; }
  wait_for 20 sampled
  kill -KILL "$sampler"
  wait $client || :
  wait_for 12 test ! -e "/proc/$child"
  finish a
}

test_a_user_namespace() {
  "${user[@]}" unshare --user --map-root-user true || skip 'no user namespaces here'
  mkdir -m 777 prof
  "${user[@]}" "$heaptap" record -p 1M -b copy -o prof/%p.%n.pb.gz \
    unshare --user --map-root-user /usr/bin/python3 -c 'x = bytearray(50000000)' 2>err || fail "$(cat err)"
  profile_check prof/*.peak.pb.gz
  at_least 50000000 "$(sums inuse_space prof/*.peak.pb.gz)" 'bytes at the peak'
}

# There all users have one number, so who offers the memory may be anybody: the program runs without it, and that is said.
test_a_user_namespace_without_numbers() {
  "${user[@]}" unshare --user true || skip 'no user namespaces here'
  mkdir -m 777 prof
  "${user[@]}" "$heaptap" record -p 1M -b copy -o prof/%p.%n.pb.gz \
    unshare --user /usr/bin/python3 -c 'x = bytearray(50000000)' 2>err || fail "$(cat err)"
  [ ! -e "$(ls prof/*.peak.pb.gz 2>/dev/null | head -1)" ] || at_most 40000000 "$(sums inuse_space prof/*.peak.pb.gz)" 'bytes at the peak'
  matches 'which is not profiled: it runs in a user namespace where .* has no number' err
}
