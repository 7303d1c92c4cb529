# SPDX-License-Identifier: Apache-2.0
# Attaching to a process that changes between the moment when a thread is chosen and the moment when it stands still.
# timeout: 120

. "$HEAPTAP_TOP/tests/attach.sh"
need_root

# attach_once: to target, whether that succeeds or not
attach_once() {
  timeout "$(seconds 40)" "$heaptap" record -q -P "$target" --duration 1ms -o p/ 2>log 7>&- || matches 'cannot be attached to|the hooks stay in' log
  rm -rf p
}

# The memory of a program that is gone lives on in a process that shares it. What is called by the addresses in there would
# be a thread of the program that was executed: that may be one of root's, for the program may be set-user-ID.
test_another_program_with_the_pid() {
  local round
  for round in $(seq "${REPEAT:-3}"); do
    rm -f in
    running "$targets/attach_exec" 0
    attach_once
    finish
  done
}

# A thread that installs a filter of system calls is not called, for dlopen could end the program.
test_a_filter_that_comes_at_that_moment() {
  local round
  for round in $(seq "${REPEAT:-5}"); do
    rm -f in
    running "$targets/attach_filter"
    attach_once
    finish
  done
}

# dispatched [always]: a target whose system calls become signals while it computes
dispatched() {
  [ "$(printf '%s\n' 6.4 "$(uname -r)" | sort -V | head -n 1)" = 6.4 ] || skip 'before Linux 6.4 no process can ask for it'
  running "$targets/attach_dispatch" "$@"
  ! grep -q dispatched said.err || skip "no such dispatch here: $(cat said.err)"
}

# A thread whose system calls become signals is not called while that is so.
test_system_calls_that_are_dispatched() {
  local round
  dispatched
  for round in $(seq "${REPEAT:-3}"); do
    attach_once
    kill -0 "$target" || fail "round $round: it has ended: $(wait "$target"; echo $?)"
  done
  finish
}

test_system_calls_that_are_always_dispatched() {
  dispatched always
  attach_once
  matches 'cannot be attached to: each thread at a safe point had .* its system calls became signals' log
  kill "$target"
}
