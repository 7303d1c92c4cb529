# SPDX-License-Identifier: Apache-2.0
# Programs in containers: heaptap inside of one, with each set of rights, and outside of it. By runc (or crun, where runc does
# not run), with a root that is made of this machine's files, podman's default capabilities and podman's own filter if
# that is installed, else one that refuses perf_event_open as podman's does.
# timeout: 180

need_root
need_x86_64 'attaching' # which half of these do

id=heaptap-test-$$

# in_container [OPTION...] COMMAND...: see tests/oci_config.py
in_container() {
  python3 -B "$top/tests/oci_config.py" "$@"
  "$runtime" --root "$PWD/runtime" run "$id"
}

# Without cgroups to put a container into, or with a machine's rules against it, there is none to be had.
find_runtime() {
  local why=
  mkdir -p rootfs runtime
  for file in /bin/sh "$heaptap" "$targets"/* $(ldd "$heaptap" "$targets"/* | grep -o '/[^ ]*' | sort -u); do
    case $file in *:) continue ;; esac
    mkdir -p "rootfs${file%/*}"
    cp -L "$file" "rootfs$file"
  done
  for runtime in runc crun; do
    command -v $runtime >/dev/null || continue
    python3 -B "$top/tests/oci_config.py" /bin/sh -c 'exit 7'
    "$runtime" --root "$PWD/runtime" run "$id" >runtime.log 2>&1 </dev/null && status=0 || status=$?
    [ $status != 7 ] || return 0
    why="$why; $runtime: $(head -c 200 runtime.log | tr '\n' ' ')"
  done
  skip "no container can be run here${why:-; there is neither runc nor crun}"
}

remove_container() {
  [ ! -e "runtime/$id" ] || "$runtime" --root "$PWD/runtime" delete --force "$id" >/dev/null 2>&1 || :
  rmdir /sys/fs/cgroup/libpod_parent /sys/fs/cgroup/*/libpod_parent 2>/dev/null || : # podman's, if nobody else is in it
}
trap remove_container EXIT

# process_of: the number that the container's first process has on this machine
process_of() {
  sed -n 's/.*"init_process_pid":\([0-9]*\).*/\1/p' "runtime/$id/state.json" 2>/dev/null ||
    "$runtime" --root "$PWD/runtime" state "$id" | sed -n 's/.*"pid": *\([0-9]*\).*/\1/p'
}

# got BACKEND OPTION...: inside a container with these options that is what there is, and not more; stacks and names are right
got() {
  local backend=$1 profile
  shift
  rm -f x.pb.gz
  in_container "$@" "$heaptap" doctor </dev/null >doctor.out || :
  for other in uprobe breakpoint copy; do
    [ $other != "$backend" ] || break
    matches "^note +backend $other: " doctor.out
  done
  matches "^ok +backend $backend: " doctor.out
  in_container "$@" "$heaptap" record -q -b "$backend" -p 1 -o "$PWD/x.pb.gz" "$targets/leaky" 300 64 </dev/null 2>err ||
    fail "$backend, $*: status $?: $(cat err)"
  profile_check x.pb.gz
  comment_of x.pb.gz >comments
  matches "^samples: .*(by $backend|copied by the hook) [0-9]+" comments
  reached_exactly x.pb.gz remember_request 'alloc_objects 300' 'inuse_space 19200'
  reached_exactly x.pb.gz load_table 'inuse_space 1048576'
  reached_exactly x.pb.gz main 'alloc_objects 602'
}

test_inside() {
  stage leaky
  find_runtime
  got copy
  matches '^note +this process has a seccomp filter, which forbids perf_event_open$' doctor.out
  matches '^ +fix: .*--privileged' doctor.out
  got copy --cap-add PERFMON # podman's filter wants more
  got uprobe --cap-add SYS_ADMIN
  got uprobe --cap-add ALL --unconfined # --privileged
  [ "$(cat /proc/sys/kernel/perf_event_paranoid)" -le 2 ] || return 0
  got breakpoint --cap-add PERFMON --unconfined
}

# A profile of the runtime alone is not what was wanted: so it is said.
test_record_of_a_runtime() {
  stage leaky
  find_runtime
  python3 -B "$top/tests/oci_config.py" "$targets/leaky" 300 64
  record -p 1 -o p/ "$runtime" --root "$PWD/runtime" run "$id" 2>err </dev/null
  matches "^heaptap: $runtime \\(pid [0-9]+\\): programs in containers have an environment of their own\$" err
  matches '^heaptap: and are not profiled by this; as root: heaptap attach PID --force$' err
  [ -z "$(ls p | grep leaky)" ] || fail "it is profiled: $(ls p)"
  record -p 1 -o p/ "$runtime" --root "$PWD/runtime" list 2>err >list </dev/null
  ! grep containers err || fail "$(cat err)"
}

# With the environment and the library, in the machine's pid namespace, and with the right to open another's descriptor.
test_record_with_its_environment() {
  stage leaky
  find_runtime
  cat >start <<'S'
#!/bin/sh
python3 -B "$HEAPTAP_TOP/tests/oci_config.py" "$@" --env "LD_PRELOAD=$LD_PRELOAD" --env "HEAPTAP=$HEAPTAP" "$targets/leaky" 300 64
exec "$runtime" --root "$PWD/runtime" run "$id"
S
  chmod +x start
  export runtime id targets
  record -q -p 1 -o p/ ./start --host-pids --cap-add SYS_PTRACE </dev/null
  profile=$(only p/heaptap.leaky.*.exit.pb.gz)
  profile_check "$profile"
  reached_exactly "$profile" remember_request 'alloc_objects 300' 'inuse_space 19200'
  rm -r p
  record -q -p 1 -o p/ ./start --host-pids </dev/null
  [ -z "$(ls p | grep leaky)" ] || fail "without CAP_SYS_PTRACE, too: $(ls p)"
}

# From outside, by number: with no flag at all. A filter is asked about.
test_attach() {
  . "$top/tests/attach.sh"
  stage attach_truth attach_module
  find_runtime
  for confined in --unconfined ''; do
    rm -rf p log
    # shellcheck disable=SC2086
    python3 -B "$top/tests/oci_config.py" $confined "$targets/attach_truth" 2 "$targets/attach_module"
    running "$runtime" --root "$PWD/runtime" run "$id"
    started=$target
    target=$(process_of)
    equal attach_truth "$(cat "/proc/$target/comm")"
    if [ -z "$confined" ]; then
      equal 1 "$(status_of "$heaptap" record -q -o p/ -P "$target" --duration 1ms 7>&-)"
      matches "^heaptap: pid $target has a seccomp filter, .*: --force" err
      attach -p 1 --force
    else
      attach -p 1
    fi
    echo >&7
    wait_for 30 said_times done 1
    detach
    profile=$(only p/heaptap.attach_truth."$target".detach.pb.gz)
    profile_check "$profile"
    reached_exactly "$profile" thread_work 'alloc_objects 1000' 'inuse_objects 500'
    reached_exactly "$profile" module_alloc 'alloc_objects 200'
    target=$started
    finish
    rm in
  done
}

# A daemon outside needs nothing of the container but that its programs load the library.
test_daemon() {
  . "$top/tests/daemon_lib.sh"
  stage daemon_steps daemon_offer
  find_runtime
  start_daemon
  in_container --env LD_PRELOAD="$PWD/bin/libheaptap.so" "$PWD/bin/daemon_steps" \
    on hold 100 1000 touch held await go </dev/null >out 2>err &
  container=$!
  wait_for 20 test -e held
  touch go
  wait $container || fail "status $?: $(cat err)"
  found() { ls store/steps/*/*.exit.pb.gz 2>/dev/null | grep -q .; }
  wait_for 20 found
  profile=$(only store/steps/*/*.exit.pb.gz)
  profile_check "$profile"
  reached_exactly "$profile" hold 'inuse_objects 100' 'inuse_space 100000'
  stop_daemon
}

# podman itself, where that runs: what its defaults are is its own word.
podman_run() {
  # shellcheck disable=SC2086
  $podman run --rm --network=none --ulimit nofile=1024:4096 --ulimit nproc=4096:8192 -v "$PWD:$PWD" -w "$PWD" "$@"
}

find_podman() {
  command -v podman >/dev/null || skip 'no podman'
  find_runtime
  for driver in overlay vfs; do
    for how in '' "--cgroup-manager cgroupfs --runtime $(command -v "$runtime")"; do
      podman="podman --root $PWD/images --runroot $PWD/running --tmpdir $PWD/podman --storage-driver $driver $how"
      podman_run --rootfs "$PWD/rootfs" /bin/sh -c 'exit 7' >podman.log 2>&1 </dev/null && status=0 || status=$?
      [ $status != 7 ] || return 0
    done
  done
  skip "podman runs nothing here: $(tail -n 1 podman.log)"
}

# in_podman BACKEND OPTION...: that backend is had, and its profile is right
in_podman() {
  local backend=$1
  shift
  podman_run "$@" --rootfs "$PWD/rootfs" "$heaptap" doctor >out 2>&1 </dev/null || :
  equal "ok $backend:" "$(awk '$2 == "backend" && $1 == "ok" { print $1, $3; exit }' out)" "podman run $*"
  podman_run "$@" --rootfs "$PWD/rootfs" "$heaptap" record -q -b "$backend" -p 1 -o "$PWD/x.pb.gz" "$targets/leaky" 300 64 </dev/null
  profile_check x.pb.gz
  reached_exactly x.pb.gz remember_request 'alloc_objects 300' 'inuse_space 19200'
}

test_podman() {
  stage leaky
  find_podman
  in_podman copy
  in_podman uprobe --cap-add SYS_ADMIN
  in_podman uprobe --privileged
  [ "$(cat /proc/sys/kernel/perf_event_paranoid)" -gt 2 ] ||
    in_podman breakpoint --cap-add PERFMON --security-opt seccomp=unconfined
  # shellcheck disable=SC2086
  record -p 1 -o p/ $podman run --rm --network=none --ulimit nofile=1024:4096 --ulimit nproc=4096:8192 \
    --rootfs "$PWD/rootfs" "$targets/leaky" 300 64 2>err </dev/null
  matches '^heaptap: podman \(pid [0-9]+\): programs in containers have an environment of their own$' err
  [ -z "$(ls p | grep leaky)" ] || fail "it is profiled: $(ls p)"
  podman_run --rootfs "$PWD/rootfs" "$targets/leaky" 1 1 </dev/null
}
