# SPDX-License-Identifier: Apache-2.0
# `heaptap record -P` of processes in other namespaces and roots, and where a file in memory may not be executed.
# timeout: 120

. "$HEAPTAP_TOP/tests/attach.sh"

# job COMMAND...: starts it in the background, a starter of attach_truth; sets job, and target
job() {
  rm -f in
  mkfifo in
  [ "$(id -u)" != 0 ] || chmod 666 in
  "$@" <in >said 2>said.err &
  job=$!
  exec 7>in
  wait_for 20 says ready
  target=$(descendant $job attach_truth)
}

# descendant PID NAME: of it, whether it is that itself, or a child started it
descendant() {
  [ "$(cat "/proc/$1/comm")" != "$2" ] || { echo "$1"; return; }
  for child in $(ps -o pid= --ppid "$1"); do
    descendant "$child" "$2"
  done
}

# seen: one round of work is attached to, and in the profile
seen() {
  attach -p 1
  echo >&7
  wait_for 30 said_times done 1
  detach
  profile=$(only p/heaptap.attach_truth."$target".detach.pb.gz)
  reached_exactly "$profile" thread_work 'alloc_objects 1000' 'inuse_objects 500'
  reached_exactly "$profile" module_alloc 'alloc_objects 200'
  finish_job
  rm -r p
}

finish_job() {
  exec 7>&-
  wait $job || fail "the target ended with $?: $(cat said said.err)"
}

test_namespaces() {
  need_root
  unshare --mount --pid --net --ipc --uts --fork --mount-proc true || skip 'no namespaces here'
  # the third has its starter's /proc, where it has another number
  for kind in '--mount --pid --net --ipc --uts --fork --mount-proc' \
    '--user --map-root-user --mount --pid --fork --mount-proc' '--pid --fork'; do
    # shellcheck disable=SC2086
    job unshare $kind "$targets/attach_truth" 2 "$targets/attach_module"
    seen
  done
}

test_user_namespace_without_privileges() {
  [ "$(cat /proc/sys/kernel/yama/ptrace_scope 2>/dev/null || echo 0)" = 0 ] || skip 'kernel.yama.ptrace_scope is not 0'
  unprivileged unshare --user --map-root-user true || skip 'no user namespaces here'
  stage attach_truth attach_module
  chmod 777 .
  job unprivileged unshare --user --map-root-user --pid --fork "$targets/attach_truth" 2 "$targets/attach_module"
  unprivileged "$heaptap" record -p 1 -o p/ -P "$target" --duration 4s 2>log 7>&- &
  sampler=$!
  attached() { grep -q 'attached; paused one thread' log || ! kill -0 $sampler 2>/dev/null; }
  wait_for 30 attached
  grep -q 'attached; paused one thread' log || fail "not attached, status $(wait $sampler || echo $?): $(cat log)"
  echo >&7
  wait_for 30 said_times done 1
  wait $sampler || fail "record ended with $?: $(cat log)"
  reached_exactly "$(only p/heaptap.attach_truth."$target".detach.pb.gz)" thread_work 'alloc_objects 1000'
  finish_job
}

# capabilities_of FILE SED_SCRIPT: of contrib/
capabilities_of() {
  sed -n "$2" "$HEAPTAP_TOP/contrib/$1" | grep -o '[A-Z][A-Z_]*' | sed 's/^CAP_//' | tr '[:upper:]' '[:lower:]' | sort
}

# What is shipped for a daemon lets it attach to processes of other users, mounts and pid namespaces, by memory.
test_capabilities_of_the_daemon() {
  need_root
  unshare --mount --pid --fork --mount-proc true || skip 'no namespaces here'
  names=$(capabilities_of systemd/heaptapd.service 's/^CapabilityBoundingSet=//p')
  equal "$names" "$(capabilities_of kubernetes/daemonset.yaml '/^ *add:/,/\]/{s/add://;p}')"
  # shellcheck disable=SC2086
  restricted="setpriv --bounding-set -all$(printf ',+%s' $names) --no-new-privs"
  stage attach_truth attach_module
  printf '#!/bin/sh\nexec %s %s "$@"\n' "$restricted" "$heaptap" >restricted
  chmod +x restricted
  heaptap=$PWD/restricted
  # the first has a root folder that is not ours, as each service has for a daemon with one of its own
  for kind in '--mount' '--mount --pid --fork --mount-proc'; do
    # shellcheck disable=SC2086
    job unshare $kind setpriv --reuid "$other_user" --regid 65534 --clear-groups \
      "$targets/attach_truth" 2 "$targets/attach_module"
    attach -p 1
    matches 'r-xp.*/memfd:libheaptap-attach' "/proc/$target/maps"
    detach
    finish_job
    rm -r p
  done
  # what has the target's user, and was stopped by it
  setpriv --reuid "$other_user" --regid 65534 --clear-groups sleep 1000 &
  stopped=$!
  wait_for 20 grep -qs '^sleep' "/proc/$stopped/comm"
  kill -STOP $stopped
  $restricted bash -c "kill -KILL $stopped" || fail 'they cannot end a holder'
  wait $stopped || :
}

# Who has its user can open what it holds, and change the mode of that: none of it is a file of the sampler's. The filter of
# system calls is the last that it takes, after the user and the namespaces.
test_a_holder_has_only_what_it_lends() {
  sleep 1000 &
  target=$!
  mkfifo answers
  "$heaptap" attach-holder $target 3<>answers 4</dev/zero 5</dev/zero <&- >&- 2>&- &
  holder=$!
  wait_for 20 grep -qs '^Seccomp:.*2' /proc/$holder/status
  matches '^heaptap-holder' /proc/$holder/comm
  ls -l /proc/$holder/fd >held
  matches ' 5 -> /dev/zero$' held
  ! grep -E ' [012] -> ' held || fail 'it holds more than it was given'
  kill -KILL $holder $target
  wait $holder $target || :
}

# make_root FOLDER: a root that has what attach_truth needs
make_root() {
  local file
  for file in "$targets/attach_truth" "$targets/attach_module" $(ldd "$targets/attach_truth" | grep -o '/[^ ]*'); do
    mkdir -p "$1${file%/*}"
    cp -L "$file" "$1$file"
  done
}

# Library and region come by a folder in that root, which is gone when `attached` is said; twice.
test_chroot_without_proc() {
  need_root
  stage attach_truth attach_module
  make_root root
  job chroot root "$targets/attach_truth" 2 "$targets/attach_module"
  [ ! -e "/proc/$target/root/proc" ] || fail 'there is a /proc'
  descriptors=$(ls "/proc/$target/fd")
  for round in 1 2; do
    attach -p 1
    [ -z "$(find root -name '.heaptap*')" ] || fail "left: $(find root -name '.heaptap*')"
    echo >&7
    wait_for 30 said_times done $round
    detach
    profile=$(only p/heaptap.attach_truth."$target".detach.pb.gz)
    profile_check "$profile"
    reached_exactly "$profile" thread_work 'alloc_objects 1000' 'inuse_objects 500'
    reached_exactly "$profile" module_alloc 'alloc_objects 200'
    equal 1 "$(grep -c 'r-xp.*libheaptap-attach' "/proc/$target/maps")" 'libraries of ours'
    rm -r p
  done
  equal "$descriptors" "$(ls "/proc/$target/fd")" 'descriptors of the target'
  finish_job
}

# No folder of that root takes a file: refused in one line, and nothing is left.
test_chroot_that_takes_no_file() {
  need_root
  stage attach_truth attach_module
  make_root root
  unshare --mount sh -c 'mount --bind root root && mount -o remount,bind,ro root' || skip 'no mounts here'
  job unshare --mount sh -c "mount --bind root root && mount -o remount,bind,ro root && cd root &&
    exec chroot . '$targets/attach_truth' 2 '$targets/attach_module'"
  equal 1 "$(status_of "$heaptap" record -q -o p/ -P "$target" --duration 1ms 7>&-)"
  matches "^heaptap: pid $target cannot be attached to: it has no /proc that leads to the library, and its root has no folder for one: (Read-only file system|Permission denied)\$" err
  equal 1 "$(wc -l <err)" lines
  ! grep -E 'libheaptap|memfd:heaptap' "/proc/$target/maps" || fail 'something of ours is in it'
  finish_job
}

# vm.memfd_noexec is each pid namespace's own.
test_memory_may_not_be_executed() {
  need_root
  [ -e /proc/sys/vm/memfd_noexec ] || skip 'the kernel has no vm.memfd_noexec'
  cat >inside.sh <<'S'
echo 2 >/proc/sys/vm/memfd_noexec || exit 42
. "$HEAPTAP_TOP/tests/lib.sh"
. "$HEAPTAP_TOP/tests/attach.sh"
running "$targets/attach_truth" 2 "$targets/attach_module"
attach -v -p 1
library=$(sed -n 's/.*r-xp[^/]*\(.*libheaptap-attach.so\) (deleted)$/\1/p' "/proc/$target/maps")
matches '/[.]heaptap-[0-9a-f]*/libheaptap-attach.so$' - <<<"$library"
[ ! -e "${library%/*}" ] || fail "a folder is left: ${library%/*}" # this one: /tmp is everybody's
! grep 'r-xp.*memfd' "/proc/$target/maps" || fail 'memory is executed'
echo >&7
wait_for 30 said_times done 1
detach
profile=$(only p/heaptap.attach_truth.*.detach.pb.gz)
reached_exactly "$profile" thread_work 'alloc_objects 1000' 'inuse_objects 500'
finish
S
  unshare --pid --fork --mount-proc bash -eu inside.sh || { [ $? != 42 ] || skip 'vm.memfd_noexec cannot be set'; fail "$(cat log)"; }
  profile_check p/*.detach.pb.gz
}

# A guard that refuses memory as code, as a security module may: the loader's refusal leads to the file.
test_memory_is_refused_to_the_loader() {
  need_root
  running "$targets/attach_guard" "$targets/attach_truth" 2 "$targets/attach_module"
  equal 1 "$(status_of "$heaptap" record -q -o p/ -P "$target" --duration 1ms 7>&-)"
  matches 'has a seccomp filter' err
  attach -p 1 --force
  matches 'r-xp.*/libheaptap-attach.so \(deleted\)$' "/proc/$target/maps"
  ! grep 'memfd:libheaptap' "/proc/$target/maps" || fail 'what was refused is still mapped'
  echo >&7
  wait_for 30 said_times done 1
  detach
  reached_exactly "$(only p/heaptap.attach_truth."$target".detach.pb.gz)" thread_work 'alloc_objects 1000' 'inuse_objects 500'
  finish
}
