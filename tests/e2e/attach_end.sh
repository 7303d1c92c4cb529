# SPDX-License-Identifier: Apache-2.0
# `heaptap record -P`: several targets, one of which never is at a safe point; signals meanwhile; what is executed.
# timeout: 120

. "$HEAPTAP_TOP/tests/attach.sh"

switches() { awk '/^voluntary_ctxt_switches/ { print $2 }' "/proc/$stuck/status"; }

# stuck: starts a program, and has it in the loader from then on; sets stuck, and how often it has slept
stuck() {
  mkfifo stuck.in
  "$targets/attach_stuck" "$targets/attach_stuck_module" <stuck.in >stuck.out 2>&1 &
  stuck=$!
  exec 8>stuck.in
  wait_for 20 grep -q ready stuck.out
  "$@"
  echo in >&8
  wait_for 20 grep -q inside stuck.out
  slept=$(switches)
}

# It goes on, and ends well.
release() {
  echo >&8
  wait_for 20 grep -q out stuck.out
  exec 8>&-
  wait $stuck || fail "the target ended with $?: $(cat stuck.out)"
}

# Its library is at hand: it has been stopped for a look, more often than it may sleep by itself. The search goes on.
searching() { [ -n "$(child_of $sampler heaptap-attach)" ] && [ "$(switches)" -gt $((slept + 2)) ]; }

test_stopped_while_it_searches() {
  need_root
  stuck true
  cp "/proc/$stuck/maps" maps
  "$heaptap" record -o p/ -P $stuck 2>log 8>&- &
  sampler=$!
  wait_for 20 searching
  began=$SECONDS
  kill -TERM $sampler
  status=0
  wait $sampler || status=$?
  equal 1 $status status
  [ $((SECONDS - began)) -lt "$(seconds 8)" ] || fail "it took $((SECONDS - began)) s"
  matches "^heaptap: pid $stuck cannot be attached to: given up before a thread was at a safe point" log
  equal 1 "$(wc -l <log)" lines
  equal 0 "$(awk '/^TracerPid/ { print $2 }' "/proc/$stuck/status")" tracer
  cmp maps "/proc/$stuck/maps" || fail 'it is not as it was'
  release
}

# One is in force and recorded while another is searched for; the end of the session is the search's, too.
test_one_does_not_hold_up_the_other() {
  need_root
  stuck true
  running "$targets/attach_truth" 2 "$targets/attach_module" 8>&-
  "$heaptap" record -p 1 -o p/ -P "$stuck,$target" 2>log 7>&- 8>&- &
  sampler=$!
  wait_for 30 grep -q "pid $target (attach_truth): attached" log
  echo >&7
  wait_for 30 said_times done 1
  searching || fail 'the other one is not searched for any more'
  kill -TERM $sampler
  status=0
  wait $sampler || status=$?
  equal 1 $status status
  matches "^heaptap: pid $stuck cannot be attached to: given up" log
  matches "^heaptap: pid $target \(attach_truth\): detached" log
  profile=$(only p/heaptap.attach_truth."$target".detach.pb.gz)
  reached_exactly "$profile" thread_work 'alloc_objects 1000' 'inuse_objects 500'
  finish
  release
}

# A second signal ends the search at the detach; later `heaptap detach` does it.
test_second_signal_while_it_detaches() {
  need_root
  attach_first() {
    target=$stuck
    attach 8>&-
  }
  stuck attach_first
  kill -TERM "$sampler"
  wait_for 20 searching
  kill -TERM "$sampler"
  wait "$sampler" || fail "record ended with $?: $(cat log)"
  matches "^heaptap: pid $stuck: the hooks stay in, and do nothing: given up before .*: heaptap detach $stuck\$" log
  only p/heaptap.attach_stuck."$stuck".detach.pb.gz
  echo >&8
  wait_for 20 grep -q out stuck.out
  equal 0 "$(status_of "$heaptap" detach "$stuck" 8>&-)" status
  matches "^heaptap: pid $stuck \(attach_stuck\): detached; paused one thread for" err
  ! grep /memfd:heaptap "/proc/$stuck/maps" || fail 'the shared memory is still there'
  exec 8>&-
  wait $stuck || fail "the target ended with $?: $(cat stuck.out)"
}

# The sampler dies while its child searches, or calls: nothing stays behind.
test_sampler_dies_while_it_searches() {
  need_root
  stuck true
  "$heaptap" record -o p/ -P $stuck 2>log 8>&- &
  sampler=$!
  wait_for 20 searching
  attacher=$(child_of $sampler heaptap-attach)
  kill -KILL $sampler
  wait $sampler 2>/dev/null || true
  gone() { ! kill -0 "$attacher" 2>/dev/null; }
  wait_for 20 gone
  release
}

# What forked children execute is named, with -v and in the comments; and what it executes itself.
named() {
  local backend=$1
  rm -rf p in
  cat >program.sh <<'S'
echo ready
while read -r line; do
  case $line in
    short) /bin/true ;;
    long) sleep 100 & ;;
    self) exec /bin/sleep 100 ;;
  esac
  echo "done $line"
done
S
  running bash program.sh
  echo long >&7 # before the attach: not the attached one's
  wait_for 20 says 'done long'
  attach -v -b "$backend" -p 1 --children=no
  echo long >&7
  wait_for 30 grep -q "^heaptap: pid $target: its child executed .*sleep (pid [0-9]*), which is not followed (1 in all)" log
  if [ "$backend" = uprobe ]; then
    echo short >&7
    wait_for 30 grep -q "^heaptap: pid $target: its child executed .*true (pid [0-9]*), which is not followed (2 in all)" log
  fi
  echo self >&7
  wait_for 30 grep -q "^heaptap: bash (pid $target) executed .*sleep, which is not profiled" log
  kill "$target"
  wait "$target" 2>/dev/null || true
  wait "$sampler" || fail "record ended with $?: $(cat log)"
  comment_of "$(only p/heaptap.*bash."$target".exit.pb.gz)" >comments
  matches '^not followed: (at least )?[12] programs that forked children executed, the last .*\(pid [0-9]+\)' comments
  matches '^snapshot: exit, the process executed .*/sleep, which is not profiled: what an attached process executes is not followed' comments
}

test_executed_is_not_followed() {
  need_root
  named copy
  named uprobe
}

# --push goes with --pid.
test_push() {
  need_root
  mkdir server
  /usr/bin/python3 -B "$top/tests/push_server.py" server 2>server.err &
  server_pid=$!
  trap 'kill $server_pid 2>/dev/null || :' EXIT
  wait_for 20 test -s server/port
  running "$targets/attach_truth" 1 "$targets/attach_module"
  export XDG_STATE_HOME=$PWD/state
  attach -p 1 --push "pyroscope+http://127.0.0.1:$(cat server/port)"
  echo >&7
  wait_for 30 said_times done 1
  detach
  finish
  rm -f p/*.peak.pb.gz
  equal "$(ls p/*.pb.gz | wc -l)" "$(ls server/*.json | wc -l)" requests
  equal "$(sums alloc_space p/*.detach.pb.gz p/*.exit.pb.gz)" "$(sums alloc_space server/*.pb.gz)" allocated
}
