# SPDX-License-Identifier: Apache-2.0
# Signals reach COMMAND as they would without heaptap: from the terminal once, from kill(1) by way of the front.

# Starts talk in the background with its stdin on a fifo; sets $front and $talk.
start_talk() {
  mkfifo lines
  "$heaptap" record -q "$targets/talk" <lines >answers 2>err &
  front=$!
  exec 8>lines
  wait_for 20 grep -q ready answers
  talk=$(awk '/^ready/ { print $2 }' answers)
}

has_counted() {
  echo counts >&8
  sleep 0.02
  grep -qE "$1" answers
}

end_talk() {
  echo "exit $1" >&8
  status=0
  wait "$front" || status=$?
  equal "$1" $status 'exit status'
}

test_forwarded_to_command() {
  start_talk
  # A job in the background of a non-interactive shell ignores INT and QUIT; talk installs its own handlers.
  for signal in TERM HUP USR2 INT QUIT; do
    kill -$signal "$front"
    wait_for 20 has_counted "$signal=1"
  done
  matches 'INT=1 QUIT=1 TERM=1 HUP=1 USR1=0 USR2=1 CONT=0' answers
  end_talk 12
}

test_signal_that_kills_command() {
  "$heaptap" record -q sleep 1000 &
  front=$!
  wait_for 20 eval '[ "$(child_of $front sleep)" ]'
  kill -TERM $front
  status=0
  wait $front || status=$?
  equal 143 $status
}

test_stop_and_continue_by_kill() {
  start_talk
  kill -STOP "$talk"
  wait_for 20 grep -q '^State:.*stopped' "/proc/$talk/status"
  # Sent to the front, meant for COMMAND.
  kill -CONT "$front"
  wait_for 20 has_counted 'CONT=1'
  end_talk 13
}

are_stopped() {
  grep -q '^State:.*stopped' "/proc/$front/status" && grep -q '^State:.*stopped' "/proc/$talk/status"
}

# COMMAND stops again as soon as the group is continued: the front must not continue it once more. Both have the same
# processor, where COMMAND goes first.
test_stopped_again_at_once() {
  local i processor
  set -m # a process group of its own
  start_talk
  set +m
  processor=$(taskset -pc $$ | sed 's/.*[ ,-]//')
  taskset -pc "$processor" "$front" >/dev/null
  taskset -pc "$processor" "$talk" >/dev/null
  renice -n 19 -p "$front" >/dev/null
  echo 'stop 41' >&8
  for ((i = 1; i <= 40; i++)); do
    wait_for 20 are_stopped
    kill -CONT -- "-$front"
    wait_for 20 grep -qx "continued $i" answers
  done
  wait_for 20 are_stopped
  equal 40 "$(grep -c continued answers)" 'SIGCONTs'
  kill -CONT "$front" # alone: it is passed on
  wait_for 20 grep -qx 'continued 41' answers
  end_talk 14
}

# What the front noted while the whole group was continued does not count for a SIGCONT that comes to the front alone.
test_continued_alone_after_the_group() {
  local i
  set -m
  start_talk
  set +m
  echo 'stop 80' >&8
  for ((i = 1; i < 80; i += 2)); do
    wait_for 20 are_stopped
    kill -CONT -- "-$front"
    wait_for 20 grep -qx "continued $i" answers
    wait_for 20 are_stopped
    kill -CONT "$front"
    wait_for 20 grep -qx "continued $((i + 1))" answers
  done
  end_talk 14
}

test_ctrl_c() {
  python3 "$top/tests/terminal.py" \
    "send:$heaptap record -q $targets/talk; echo status=\$?\n" 'expect:ready \d+' \
    'send:\x03' 'send:counts\n' 'expect:INT=1 QUIT=0 TERM=0' \
    'send:\x1c' 'send:counts\n' 'expect:INT=1 QUIT=1 TERM=0' \
    'send:exit 5\n' 'expect:status=5' 'expect:prompt> '
}

test_ctrl_c_ends_an_ordinary_command() {
  # One process, so that no shell of the test's own takes part (dash may miss a SIGINT while it forks).
  echo up >file
  python3 "$top/tests/terminal.py" \
    "send:$heaptap record -q tail -f file\n" 'expect:\nup' 'send:\x03' \
    'expect:prompt> ' 'send:echo status=$?\n' 'expect:status=130'
}

# "stopped": for the second Ctrl-Z the shell may have the terminal before COMMAND has stopped (stop_self() in
# sampler/cmd/record/front_signals.c), and what is typed then may still be read by COMMAND.
test_ctrl_z_and_fg() {
  python3 "$top/tests/terminal.py" \
    "send:$heaptap record -q $targets/talk\n" 'expect:ready \d+' \
    'send:\x1a' 'expect:Stopped' 'expect:prompt> ' \
    'send:jobs\n' 'expect:Stopped.*record -q' 'expect:prompt> ' \
    'send:fg\n' 'expect:talk' 'insist:counts\n' 'expect:INT=0 QUIT=0 TERM=0 HUP=0 USR1=0 USR2=0 CONT=1' \
    'send:\x1a' 'expect:Stopped' 'expect:prompt> ' 'stopped:' 'send:bg\n' 'expect:&' 'expect:prompt> ' \
    'send:until jobs | grep Stop; do sleep 0.05; done\n' 'expect:\nprompt> ' \
    'send:fg\n' 'expect:talk' 'insist:exit 6\n' 'expect:\n.*prompt> ' 'send:echo status=$?\n' 'expect:status=6'
}

test_reading_from_the_background() {
  python3 "$top/tests/terminal.py" \
    "send:$heaptap record -q cat &\n" 'expect:prompt> ' \
    'send:until jobs | grep Stop; do sleep 0.05; done\n' 'expect:\nprompt> ' 'send:jobs\n' 'expect:Stopped' \
    'send:fg\n' 'expect:cat' 'insist:one line\n' 'expect:one line\s+one line' 'send:\x04' 'expect:prompt> ' \
    'send:echo status=$?\n' 'expect:status=0'
}

test_nohup() {
  start_talk
  end_talk 0
  rm -f lines
  # A COMMAND that ignores SIGHUP because it was told to stays alive when the front is told to hang up.
  (trap '' HUP; exec "$heaptap" record -q sh -c 'echo up >up; while [ ! -e stop ]; do sleep 0.05; done; exit 4') &
  front=$!
  wait_for 20 test -s up
  kill -HUP $front
  touch stop
  status=0
  wait $front || status=$?
  equal 4 $status
}
