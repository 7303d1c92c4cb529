# SPDX-License-Identifier: Apache-2.0
# Programs that limit their own memory after the start: they get what the limit has room for, as without heaptap.

# alike COMMAND...: what it prints is the same natively, recorded, and with our library and no session.
alike() {
  "$@" >native || fail "natively: status $?"
  rm -rf p
  record -p 1 -o p/ "$@" >recorded 2>err || { cat err; fail "recorded: status $?"; }
  LD_PRELOAD=$HEAPTAP_PROGRAMS/libheaptap.so "$@" >offered || fail "offered: status $?"
  equal "$(cat native)" "$(cat recorded)"
  equal "$(cat native)" "$(cat offered)"
}

told='not profiled since they set themselves a limit of memory: 1 processes'

test_address_space() {
  for way in setrlimit setrlimit64 prlimit prlimit64; do
    alike "$targets/memory_limit" $way space
    equal 'result 0 77;heap 1;stack 1;' "$(tr '\n' ';' <native)"
    matches "$told" err
  done
  only p/*.exit.pb.gz >profile
  profile_check "$(cat profile)"
  comment_of "$(cat profile)" | grep -q "^$told" || fail 'not in the profile'
  reached_exactly "$(cat profile)" hold 'inuse_objects 1' 'inuse_space 1000' 'alloc_objects 1'
  "$heaptap" report "$(cat profile)" >report
  matches '^  every allocation recorded, but not since a limit of memory left no room for heaptap$' report
}

# Of address space there is enough: only tables that are not in use make way, and all is seen.
test_data() {
  for case in data thread; do
    alike "$targets/memory_limit" setrlimit $case
    equal 'result 0 77;heap 1;stack 1;' "$(tr '\n' ';' <native)"
    ! grep 'set themselves a limit' err || fail "$case"
    reached_exactly "$(only p/*.exit.pb.gz)" hold 'alloc_objects 2' "alloc_space $((1000 + (100 << 20)))" 'inuse_objects 0'
  done
}

# What is mapped with the library itself: no limit can decline that.
test_library_is_small() {
  for library in "$HEAPTAP_PROGRAMS"/libheaptap*.so; do
    bytes=$(readelf -SW "$library" | sed -n 's/.* \.bss *NOBITS *[0-9a-f]* [0-9a-f]* \([0-9a-f]*\) .*/\1/p')
    at_least "$((0x$bytes))" 32768 "bytes of .bss in $library, at most"
  done
}

# The limit is there before the start: who starts natively starts with us, and is profiled.
test_data_from_the_start() {
  for command in 'bash --version' 'ls --version' true 'python3 --version' 'sqlite3 --version'; do
    command -v ${command%% *} >/dev/null || continue
    for kib in 4000 1000000; do
      sh -c "ulimit -d $kib && exec $command" >native || fail "$command natively: $?"
      LD_PRELOAD=$HEAPTAP_PROGRAMS/libheaptap.so sh -c "ulimit -d $kib && exec $command" >offered || fail "$command, offered: $?"
      cmp native offered
      for options in '-p 1' '' '-p 1 --mmap'; do
        rm -rf p
        # shellcheck disable=SC2086
        record $options -o p/ sh -c "ulimit -d $kib && exec $command" >recorded 2>err || fail "$command: $? $(cat err)"
        cmp native recorded
      done
    done
  done
  for options in '-p 1' ''; do # a table of some KiB is enough for these few
    rm -rf p
    # shellcheck disable=SC2086
    record $options -o p/ sh -c "ulimit -d 4000 && exec $targets/memory_limit setrlimit fill=0" >recorded
    profile=$(only p/heaptap.memory_limit.*.exit.pb.gz)
    profile_check "$profile"
    [ "$options" = '' ] || reached_exactly "$profile" hold "alloc_objects $(($(cat recorded) / 4 + 1))"
  done
  # There is no room at all, which is said.
  record -o p/ sh -c "ulimit -d 400 && exec $targets/memory_limit setrlimit fill=0" >recorded 2>err || fail "status $?"
  matches 'ulimit' err
}

# share LIMIT_KIB NATIVE_KIB: no more than an eighth of the limit is ours.
share() {
  at_least $(($2 - $1 / 8 - 64)) "$(cat filled)" "KiB of $1 for the program, natively $2"
}

test_data_is_the_programs() {
  for mib in 4 8 16 32 64; do
    for when in "$targets/memory_limit setrlimit fill=$mib" \
      "sh -c 'ulimit -d $((mib * 1024)) && exec $targets/memory_limit setrlimit fill=0'"; do
      native=$(eval "$when")
      LD_PRELOAD=$HEAPTAP_PROGRAMS/libheaptap.so eval "$when" >filled || fail "$when, offered: $?"
      share $((mib * 1024)) "$native"
      for options in '' '-p 1' '-p 1 --mmap'; do
        eval "record $options -o p/ $when" >filled || fail "$when, $options: $?"
        share $((mib * 1024)) "$native"
      done
    done
  done
}

test_forked_child() {
  alike "$targets/memory_limit" prlimit64 child
  equal 'result 0 77;heap 1;stack 1;status 0;' "$(tr '\n' ';' <native)"
  matches "$told" err
}

# It has its parent's memory, and a limit of its own.
test_vfork_child() {
  alike "$targets/memory_limit" prlimit vfork
  equal 'status 0;' "$(tr '\n' ';' <native)"
  ! grep 'set themselves a limit' err || fail 'the parent'
  reached_exactly "$(only p/*.exit.pb.gz)" hold 'alloc_objects 101' 'alloc_space 101000'
}

test_signal_handler() {
  alike "$targets/memory_limit" setrlimit handler
  equal 'result 0 77;heap 1;stack 1;' "$(tr '\n' ';' <native)"
  matches "$told" err
}

# What free() and malloc() may just be reading stays.
test_at_any_moment() {
  LD_PRELOAD=$HEAPTAP_PROGRAMS/libheaptap.so "$targets/memory_limit" setrlimit moments >offered
  equal 'ended well 1000' "$(cat offered)"
  record -o p/ "$targets/memory_limit" setrlimit moments >recorded
  equal 'ended well 1000' "$(cat recorded)"
}

# Who asks for a snapshot by the signal must not end a program that would have lived until it limited itself.
test_snapshot_signal() {
  mkfifo in
  "$heaptap" record -p 1 -o p/ "$targets/memory_limit" setrlimit waits <in >out 2>err &
  front=$!
  exec 7>in
  wait_for 30 grep -q '^stack 1' out
  kill -USR1 "$(child_of $front memory_limit)"
  echo >&7
  exec 7>&-
  wait $front || fail "status $?: $(cat err)"
  matches "$told" err
  ! grep executed err || fail 'it has executed nothing'
  # Its own ends it, as natively.
  equal 138 "$(status_of "$targets/memory_limit" setrlimit raises)"
  equal 138 "$(status_of "$heaptap" record -p 1 -o p/ "$targets/memory_limit" setrlimit raises)"
  matches "$told" err
}

test_python() {
  alike python3 -c 'import resource as r; r.setrlimit(r.RLIMIT_AS, (512 << 20,) * 2); b = bytearray(100 << 20); print("ok")'
  equal ok "$(cat native)"
}

test_shell() {
  alike bash -c 'ulimit -v 500000; a=$(printf "%0200000d" 1); echo ${#a}; b=$a$a$a$a$a$a$a$a$a$a; echo ${#b}'
  equal '200000 2000000' "$(xargs <native)"
}

# The word of glibc about threads is not everywhere: the kernel says it too.
test_musl() {
  command -v musl-gcc >/dev/null || skip 'musl-gcc is not installed'
  musl-gcc -std=gnu11 -D_LARGEFILE64_SOURCE -Drlimit64=rlimit -DRLIM64_INFINITY=RLIM_INFINITY -Dsetrlimit64=setrlimit \
    -Dprlimit64=prlimit -O2 -g -fno-builtin -w -pthread -o memory_limit "$top/tests/targets/memory_limit.c"
  for case in space data thread child; do
    alike ./memory_limit setrlimit $case
    matches '^heap 1$' native
  done
}
