# SPDX-License-Identifier: Apache-2.0
# Signals to everybody at once: what a service manager, timeout(1) or a supervisor's children meet.
# timeout: 120

# start OPTION... COMMAND...: in a process group of its own, until it is ready; sets front and sampler
start() {
  setsid "$heaptap" record -i 60s "$@" 2>err &
  front=$!
  wait_for 20 test -e ready
  sampler=$(child_of $front heaptap-sampler)
}

ended() {
  status=0
  wait "$front" || status=$?
}

# A service manager's stop: SIGTERM to each process of the unit, in any order; whoever comes late is gone.
test_sigterm_to_each_process_of_the_unit() {
  for round in $(seq 20); do
    rm -rf out ready
    start -q -p 1K -o out/ "$targets/trust_hold" ready
    command=$(child_of $front trust_hold)
    kill -TERM $(printf '%s\n' $front $sampler $(child_of $front heaptap-witness) $command | shuf --random-source=<(yes $round)) 2>/dev/null || :
    ended
    equal 143 $status "status in round $round"
    equal '' "$(cat err)" 'messages'
    profile_count=$(ls out | grep -cE '\.(exit|peak)\.pb\.gz$')
    equal 2 "$profile_count" "profiles in round $round"
  done
  profile_check out/*.pb.gz
}

# A service manager's watchdog ends a unit that hangs by SIGABRT to each process: what it hung with is to be seen. And
# KillSignal= may be any.
test_other_signals_to_each_process_of_the_unit() {
  for number in $(kill -l ABRT) $(kill -l ALRM) $(kill -l VTALRM) $(kill -l PROF) $(kill -l XCPU) $(kill -l IO) $(kill -l RTMIN+3); do
    rm -rf out ready
    start -q -p 1K -o out/ "$targets/trust_hold" ready
    command=$(child_of $front trust_hold)
    kill -"$number" $sampler "$(child_of $front heaptap-witness)" $front $command
    ended
    equal $((128 + number)) $status "status after signal $number"
    profile_check out/*.exit.pb.gz
  done
}

# Before COMMAND ends, the sampler is told a second time: what lives is written, and it goes.
test_a_second_sigterm_hurries() {
  start -p 1K -i 0 -o out/ "$targets/trust_hold" ready
  # Those that come together are one: again until it has gone. More than two change nothing.
  wait_for 20 eval '! kill -TERM $sampler 2>/dev/null || [ ! -e /proc/$sampler/exe ]'
  profile_check out/heaptap.trust_hold.*.0001.pb.gz
  kill -TERM "$(child_of $front trust_hold)"
  ended
  equal 143 $status
}

# It may be stopped, or hang in a file system: whoever waits is told whom for.
test_a_sampler_that_does_not_answer() {
  start -p 1K -i 0 -o out/ "$targets/trust_hold" ready
  kill -STOP $sampler
  kill -TERM "$(child_of $front trust_hold)"
  wait_for 60 grep -q "waiting for the sampler (pid $sampler), which does not answer: Ctrl-C ends the wait" err
  kill -CONT $sampler
  ended
  equal 143 $status
  profile_check out/*.exit.pb.gz
}

# Nobody who sends signals to the front answers for the sampler: here they come faster than the front looks.
test_a_sampler_that_does_not_answer_while_signals_come() {
  start -p 1K -i 0 -o out/ "$targets/trust_hold" ready
  kill -STOP $sampler
  kill -TERM "$(child_of $front trust_hold)"
  told() { kill -WINCH $front; grep -q "waiting for the sampler (pid $sampler)" err; }
  wait_for 20 told
  kill -CONT $sampler
  ended
  equal 143 $status
  profile_check out/*.exit.pb.gz
}

# stop_front_when_full: COMMAND has ended, the front knows it and is stopped, and there is no room for a message to it:
# the sampler, which has said what it has to say, looks many times whether there is
stop_front_when_full() {
  need_root # to fill its socket
  # What is not profiled is said in each summary, and nothing else in a second one.
  start -p 1K -i 0 -o out/ --exclude true sh -c '/bin/true; exec "$0" ready' "$targets/trust_hold"
  kill -STOP $sampler
  kill -TERM "$(child_of $front trust_hold)"
  wait_for 60 grep -q "waiting for the sampler (pid $sampler)" err
  kill -STOP $front
  wait_for 20 grep -q '^State:.*stopped' /proc/$front/status
  "$targets/trust_front_full" $front $sampler >filled || fail 'the socket cannot be filled'
  kill -CONT $sampler
  wait_for 60 grep -q 'killed by SIGTERM' err
  local before=$(sampler_sleeps)
  wait_for 60 eval '[ ! -e /proc/$sampler/exe ] || [ "$(sampler_sleeps)" -gt $((before + 50)) ]'
  [ -e /proc/$sampler/exe ] || fail 'the sampler did not wait for room'
  equal 1 "$(grep -c 'not chosen by --only and --exclude' err)" 'summaries'
}
sampler_sleeps() { awk '/^voluntary_ctxt_switches/ { print $2 }' /proc/$sampler/status || echo 0; }

# Its user may stop it for long: it hears that all is written when it runs again.
test_a_front_that_is_stopped_with_its_socket_full() {
  stop_front_when_full
  kill -CONT $front
  ended
  equal 143 $status
  equal 0 "$(grep -c 'the sampler died' err)" 'front that takes the sampler for dead'
  profile_check out/*.exit.pb.gz
}

test_a_front_that_is_killed_with_its_socket_full() {
  stop_front_when_full
  kill -KILL $front
  wait_for 20 eval '[ ! -e /proc/$sampler/exe ]'
  profile_check out/*.exit.pb.gz
}

# counts HOW: runs HOW on a front of talk, which is sent the signals of $wanted then, and no more
counts() {
  mkfifo lines
  setsid "$heaptap" record -q --signal none "$targets/talk" <lines >answers 2>err &
  front=$!
  exec 8>lines
  wait_for 20 grep -q ready answers
  talk=$(awk '/^ready/ { print $2 }' answers)
  "$@"
  told() { echo counts >&8; sleep 0.02; grep -qE "$wanted" answers; }
  wait_for 20 told
  kill -USR1 "$front" # goes the same way, behind a second one
  wanted="$wanted USR1=1"
  wait_for 20 told
  echo 'exit 3' >&8
  ended
  equal 3 $status
  tail -n 1 answers | grep -qE "$wanted" || fail "wanted $wanted, got $(tail -n 1 answers)"
}

# ten_times NAME COMMAND...: each time when COMMAND has had the last one, or the kernel would make one of two
ten_times() {
  local name=$1 times
  shift
  for times in $(seq 10); do
    "$@"
    wait_for 20 eval 'echo counts >&8; sleep 0.02; [ "$(tail -n 1 answers | sed "s/.*$name=\([0-9]*\).*/\1/")" -ge $times ]'
  done
}

test_to_the_group_reaches_command_once() {
  wanted='INT=10 QUIT=0 TERM=0 HUP=0'
  counts ten_times INT kill_group
}
kill_group() { kill -INT -- "-$front"; }

test_to_the_unit_reaches_command_once() {
  wanted='INT=0 QUIT=0 TERM=10 HUP=0'
  counts ten_times TERM kill_unit
}
kill_unit() {
  # The witness first: between two of these we may lose the CPU for longer than the front waits for its word.
  kill -TERM $(child_of $front heaptap-witness) $front $(child_of $front heaptap-sampler) "$talk"
}

test_to_the_front_reaches_command_once() {
  wanted='INT=0 QUIT=1 TERM=0 HUP=0'
  counts kill_front
}
kill_front() { kill -QUIT "$front"; }

test_to_the_front_and_then_to_the_group() {
  wanted='INT=0 QUIT=0 TERM=0 HUP=2'
  counts kill_both
}
kill_both() {
  kill -HUP "$front"
  wait_for 20 eval 'echo counts >&8; sleep 0.02; grep -q HUP=1 answers'
  kill -HUP -- "-$front"
}

test_a_witness_that_was_killed() {
  wanted='INT=0 QUIT=0 TERM=1 HUP=0'
  counts kill_front_without_witness
}
kill_front_without_witness() {
  kill -KILL "$(child_of $front heaptap-witness)"
  kill -TERM "$front"
}

# Supervisors that ignore SIGCHLD hand that on. There are more profiles than writers, which have to be waited for.
test_sigchld_ignored() {
  timeout -s KILL "$(seconds 30)" bash -c 'trap "" CHLD; exec "$0" record -q -p 1K -o out/ sh -c "for i in 1 2 3 4 5; do $1 /dev/null 1 0; done"' "$heaptap" "$targets/truth" ||
    fail "status $?"
  equal 5 "$(ls out | grep -c 'truth.*exit.pb.gz')" 'profiles'
  profile_check out/heaptap.truth.*.exit.pb.gz
  timeout -s KILL "$(seconds 30)" bash -c 'trap "" CHLD; exec "$0" record -q --no-heap -e cpu-clock -o events/ "$1" /dev/null 1 0' "$heaptap" "$targets/truth" ||
    fail "status $?"
}
