# SPDX-License-Identifier: Apache-2.0
# What a program sees of being attached to: its calls in progress, its registers, its memory.
# timeout: 120

. "$HEAPTAP_TOP/tests/attach.sh"

# begin NAME beside|alone: tests/targets/attach_calls waits in this call; its input, output: NAME.in, NAME.said
begin() {
  local name=$1 fd
  mkfifo "$name.in"
  # shellcheck disable=SC2094
  exec {fd}<>"$name.in"
  if [ "$2" = beside ]; then set -- "$name" beside; else set -- "$name"; fi
  ATTACH_CALLS_MS=$patience "$targets/attach_calls" "$@" <"$name.in" >"$name.said" &
  pids[$name]=$!
  waits() { grep -qs '^skip' "$name.said" || { grep -qs ready "$name.said" && grep -q '^State:.*S (' "/proc/${pids[$name]}/status"; }; }
  wait_for 20 waits
}

# calls beside|alone "NAME RESULT ERROR [input|SIGNAL]"...: all of them are attached to by one record while their call
# lasts, and see what they would have seen. With longer calls if that was late for some.
calls() {
  local with=$1 line name result error action ended
  shift
  declare -A pids
  for patience in 3000 12000 48000; do
    rm -rf ./*.in ./*.said p
    for line; do
      begin "${line%% *}" "$with"
    done
    "$heaptap" record -q -P "$(IFS=, && echo "${pids[*]}")" --duration 1ms -o p/ 2>log || grep -q 'does not exist\|ended' log ||
      fail "$(cat log)"
    ended=$(grep -c 'does not exist\|ended' log || :)
    for line; do
      read -r name result error action <<<"$line"
      case $action in
        input) echo >"$name.in" ;;
        USR2) kill -USR2 "${pids[$name]}" ;;
      esac
    done
    for line; do
      read -r name result error action <<<"$line"
      wait "${pids[$name]}" || grep -q '^skip' "$name.said" || fail "$name: it ended with $?"
      grep -q '^skip' "$name.said" ||
        equal "$name $result $error whole" "$(tail -1 "$name.said")" "what the program saw, $with"
    done
    [ "$ended" != 0 ] || return 0
  done
  fail "too late: $(cat log)"
}

test_calls_in_progress() {
  need_root
  calls alone 'poll 0 -' 'poll_input 1 - input' 'select 0 -' 'epoll_input 1 - input' 'read 1 - input' \
    'nanosleep 0 -' 'sem_timedwait -1 ETIMEDOUT' 'futex 110 ETIMEDOUT' 'sigwait 12 - USR2' 'accept 1 - input' \
    'uring_input 0 - input'
}

# Calls that a stop ends whatever we do: another thread is asked for what is to be done.
test_calls_that_would_end() {
  need_root
  calls beside 'epoll 0 -' 'sigtimed -1 EAGAIN' 'semop -1 EAGAIN' 'receive -1 EAGAIN' 'write 1 - input' \
    'uring -1 ETIME' 'uring_submit 1 - input'
}

# registers NAME: of a thread that makes no call
registers() {
  rm -f in
  running "$targets/attach_calls" "$1"
  for round in 1 2 3; do
    ! says "^$1 " || break
    "$heaptap" record -q -P "$target" --duration 1ms -o p/ 2>log 7>&- || says "^$1 " || fail "$(cat log)"
  done
  [ "$round" -gt 1 ] || fail 'it was over before it was attached to'
  wait_for 60 says "^$1 "
  finish
  equal "$1 0 - whole" "$(tail -1 said)" 'registers that differ'
}

# General and vector registers, and a flag.
test_registers() {
  need_root
  registers registers
}

# The wide half of the vectors, masks, x87, control words.
test_registers_wide() {
  need_root
  registers registers_wide
}

# seen FILE: of all mappings addresses, protections, flags and, where nobody writes, the bytes; descriptors, dispositions,
# environment.
seen() {
  python3 -B "$top/tests/attach_seen.py" "$target" >"$1"
}

different() {
  python3 -B "$top/tests/attach_seen.py" "$1" "$2" >difference
}

# A program that does nothing meanwhile: afterwards nothing is different but that the library is there, and its memory; the
# second time, nothing at all.
test_nothing_else_is_left() {
  need_root
  for program in "$targets/attach_calls poll_input beside" '/usr/bin/python3 -uc print("ready");input()'; do
    rm -f in
    # shellcheck disable=SC2086
    running $program
    asleep() { grep -q '^State:.*S (' "/proc/$target/status"; }
    wait_for 20 asleep
    seen before
    "$heaptap" record -q -P "$target" --duration 1ms -o p/ 2>log 7>&- || fail "$(cat log)"
    seen after
    different before after
    ! grep -vE '^new (rw-p|rw-s|r--p|r-xp) [0-9]+ bytes (libheaptap-attach|\[(heap|stack)\]$|\(no file\)$)' difference ||
      fail "$program: $(cat difference)"
    "$heaptap" record -q -P "$target" --duration 1ms -o p/ 2>log 7>&- || fail "$(cat log)"
    seen again
    different after again
    [ ! -s difference ] || fail "$program, the second time: $(cat difference)"
    echo >&7
    finish
  done
}

# A thread in a restartable sequence is let alone: the kernel would think that it has left it.
test_restartable_sequences() {
  need_root
  "$targets/attach_sequence" 4000 >said &
  target=$!
  ready_or_ended() { says ready || ! kill -0 $target 2>/dev/null; }
  wait_for 20 ready_or_ended
  kill -0 $target 2>/dev/null || skip 'the libc registers no sequences here'
  rounds=0
  while ! says '^sequences'; do
    ! "$heaptap" record -q -P "$target" --duration 1ms -o p/ 2>log || rounds=$((rounds + 1))
  done
  wait $target || fail "the target ended with $?"
  matches '^sequences [0-9]+ aborted [0-9]+ broken 0$' said
}

# An allocator in the program: its code is not told from the program's, but a thread that waits for input is in neither.
test_a_program_with_its_own_malloc() {
  need_root
  running "$targets/attach_own_malloc"
  attach -p 1
  echo >&7
  wait_for 30 says done
  detach
  profile=$(only p/heaptap.*."$target".detach.pb.gz)
  profile_check "$profile"
  reached_exactly "$profile" copy_text 'alloc_objects 100' 'alloc_space 100000'
  comment_of "$profile" >comments
  matches 'in the program itself' comments
  finish
}

# The call waits for a lock of the loader's; nobody waits for the call any more. When it returns the hooks are out again.
test_a_call_that_comes_late() {
  need_root
  running "$targets/attach_stuck" "$targets/attach_stuck_module" beside
  attach # the library is there then
  detach
  echo in >&7
  wait_for 20 says inside
  "$heaptap" record -o p/ -P "$target" 2>log 7>&- &
  sampler=$!
  in_the_call() { grep -q '/memfd:heaptap ' "/proc/$target/maps"; }
  wait_for 30 in_the_call
  kill -TERM $sampler
  status=0
  wait $sampler || status=$?
  equal 1 $status status
  matches 'given up while its thread [0-9]+ was in the call; it goes on by itself, and records nothing$' log
  echo >&7
  wait_for 20 says out
  gone() { ! in_the_call; }
  wait_for 30 gone
  attach -p 1
  detach
  finish
}
