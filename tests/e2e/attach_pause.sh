# SPDX-License-Identifier: Apache-2.0
# For how long a process stands still that is attached to and detached from: programs that measure it themselves.
# timeout: 120

. "$HEAPTAP_TOP/tests/attach.sh"
need_root

# pausing MODE: starts tests/targets/attach_pause
pausing() {
  rm -f in
  running "$targets/attach_pause" "$1"
}

# paused MODE: ends it, and looks at its longest pause
paused() {
  local ms
  kill -TERM "$target"
  wait_for 20 says '^longest pause' # who stands still does not end
  finish
  ms=$(sed -n 's/^longest pause \([0-9]*\).*/\1/p' said)
  at_most $((500 * factor)) "$ms" "ms, the longest pause of $1"
}

# come_and_go MODE...: whether it finds a safe point or not
come_and_go() {
  for mode; do
    pausing "$mode"
    "$heaptap" record -q -P "$target" --duration 20ms -o p/ 2>log 7>&- || matches 'no thread was at a safe point' log
    paused "$mode"
  done
}

test_a_stack_that_grows() { come_and_go grow; }
test_fibers() { come_and_go fiber; }
test_a_threaded_server() { come_and_go server; }

# The one that is in a search for long goes on also if it is to stop (^Z): or a thread could stand still as long as it does.
test_stopped_by_the_terminal() {
  set -m # a process group for it, which a terminal can stop
  pausing stray
  "$heaptap" record -P "$target" --duration 1ms -o p/ 2>log 7>&- &
  sampler=$!
  attacher_of() { attacher=$(child_of $sampler heaptap-attach) && [ -n "$attacher" ]; }
  wait_for 20 attacher_of
  kill -TSTP "$attacher"
  status=0
  wait $sampler || status=$?
  equal 1 $status status
  matches 'no thread was at a safe point' log
  paused stray
}

# Who looks at the thread waits for a page of its stack: the thread does not.
test_a_page_that_never_comes() {
  mkfifo in
  : >said
  "$targets/attach_pause" absent <in >said 2>said.err &
  target=$!
  exec 7>in
  ready_or_ended() { says ready || ! kill -0 $target 2>/dev/null; }
  wait_for 20 ready_or_ended
  says ready || skip 'no FUSE file system can be mounted here'
  "$heaptap" record -P "$target" --duration 1ms -o p/ 2>log 7>&- &
  sampler=$!
  wait_for 20 says asked
  paused absent
  ! wait $sampler || fail 'attached'
}

# The daemon's way.
test_by_the_daemon() {
  . "$top/tests/daemon_lib.sh"
  stage attach_pause
  configure 'attach = yes'
  for mode in grow fiber fiber fiber; do # not each look finds a new stack
    pausing $mode
    rm -f daemon.log
    started=0
    start_daemon
    tried() { grep -qE "pid $target: (attached|cannot be attached)" daemon.log; }
    wait_for 30 tried
    stop_daemon
    paused "$mode"
  done
}
