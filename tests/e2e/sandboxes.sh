# SPDX-License-Identifier: Apache-2.0
# Sandboxes of a user and a network namespace: the program may open nothing of the sampler's, and no abstract name leads out.

# profiled FORM...: of a program that is started in that sandbox every block is in a profile under its own pid
profiled() {
  local by
  for by in "" unprivileged; do
    rm -rf out truth
    mkdir -m 777 out
    : >truth
    chmod 666 truth
    # shellcheck disable=SC2086
    $by "$heaptap" record -i 60s -q -p 1 -b copy -o "$PWD/out/" "$@" "$targets/truth" /dev/stdout 10 0 >truth 2>err || fail "$*: status $?: $(cat err)"
    profile=$(only out/heaptap.truth.*.exit.pb.gz)
    profile_check "$profile"
    equal "$(awk '{ sum += $3 } END { print sum }' truth)" "$("$heaptap" export -f folded --sort alloc "$profile" |
      grep -E ";($(cut -f 1 truth | paste -sd '|'))[; ]" | awk '{ sum += $NF } END { print sum }')" "$* $by: bytes of the functions"
  done
}

test_a_user_and_a_network_namespace() {
  unshare -Urn true 2>/dev/null || skip 'no user namespaces here'
  stage truth
  profiled unshare -Urn
}

test_namespaces_of_all_kinds() {
  unshare -Urnpf --mount-proc true 2>/dev/null || skip 'no user namespaces here'
  stage truth
  profiled unshare -Urnpf --mount-proc
}

test_bubblewrap() {
  bwrap --ro-bind / / --proc /proc --dev /dev --unshare-all true 2>/dev/null || skip 'bwrap cannot make its namespaces here'
  stage truth
  profiled bwrap --ro-bind / / --proc /proc --dev /dev --bind "$PWD" "$PWD" --unshare-all
}

# named FILE: with the true reason
named() {
  matches 'not profiled: 1 process after an exec; the last .*sleep.*, which is not profiled: it runs in a network namespace of its own' "$1"
}

test_without_our_tmp_the_reason_is_named() {
  unshare -Urnm true 2>/dev/null || skip 'no user namespaces here'
  record -p 1 -o out/ unshare -Urnm sh -c 'mount -t tmpfs none /tmp && exec sleep 1' 2>err || fail "status $?: $(cat err)"
  named err
}

# Also where a process without a sample lies between.
test_without_our_tmp_a_forked_child_is_named() {
  unshare -Urnm true 2>/dev/null || skip 'no user namespaces here'
  record -p 1 -o out/ unshare -Urnmpf --mount-proc sh -c 'mount -t tmpfs none /tmp && exec sleep 1; exit 1' 2>err ||
    fail "status $?: $(cat err)"
  named err
}

test_a_static_child_is_named() {
  echo 'int sleep(int); int main(void) { return sleep(1); }' >static.c
  gcc -static static.c -o static || skip 'no static libc'
  record -p 1 -o out/ sh -c './static; true' 2>err || fail "status $?: $(cat err)"
  matches 'not profiled: 1 process after an exec; the last .*/static \(pid [0-9]+\), which is not profiled: it is statically linked' err
}

# A read-only /tmp: who asks is told that such programs have no way to the sampler.
test_without_a_socket_in_tmp() {
  need_root
  unshare -m sh -c 'mount --bind /tmp /tmp && mount -o remount,ro,bind /tmp && exec "$0" record -v -o x.pb.gz true' "$heaptap" 2>err ||
    skip 'no mounts here'
  matches '^heaptap: programs in a network namespace of their own are not profiled: no socket for them could be made in /tmp$' err
  record -v -o x.pb.gz true 2>err
  ! grep -q 'no socket for them' err || fail 'said without need'
}
