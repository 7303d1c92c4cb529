# SPDX-License-Identifier: Apache-2.0
# Processes that offer nonsense: the daemon lives, its memory is bounded, and what it says of others is right.
# timeout: 90

. "$top/tests/daemon_lib.sh"

# A good process beside: its sums are exact.
begin_good() {
  carry on hold 1000 1000 touch held await go drop 400 touch dropped await end &
  good=$!
  wait_for 40 test -e held
}

end_good() {
  kill -0 "$daemon" || { cat daemon.log >&2; fail 'the daemon has died'; }
  touch go
  wait_for 20 test -e dropped
  snapshot_all "$good"
  reached_exactly "$profile" hold 'inuse_space 600000' 'inuse_objects 600'
  touch end
  wait "$good"
  stop_daemon
}

hostile() {
  unprivileged "$PWD/bin/daemon_offer" "$@"
}

test_nonsense() {
  start_daemon
  chmod 777 .
  begin_good
  hostile size 100 size 4096 size 5000 abi 3 header random ready touch there flip "$(seconds 1)" &
  wait_for 20 test -e there
  wait $!
  end_good
}

test_changed_while_read() {
  start_daemon
  chmod 777 .
  begin_good
  hostile make 4 ready touch there flip 4 &
  wait_for 20 test -e there
  wait $!
  end_good
}

test_truncated_while_read() {
  start_daemon
  chmod 777 .
  begin_good
  hostile shrink shrink shrink &
  wait $! || :
  end_good
}

# An offer may stay half made for any time, and is found when it is whole; a file with the name of one is none.
test_half_made() {
  start_daemon
  begin_good
  mkdir mnt
  "$PWD/bin/daemon_offer" file "$PWD/mnt" touch other await end &
  other=$!
  "$PWD/bin/daemon_offer" half touch half await whole complete await end &
  half=$!
  wait_for 20 test -e half
  wait_for 20 test -e other
  sweeps 4
  grep -q "pid $half " daemon.log && fail 'taken before it is whole'
  touch whole
  wait_for 20 grep -q "pid $half .*profiled" daemon.log
  "$heaptap" status --socket "$PWD/run/control" --json >status.json
  matches "\"pid\": *$half\b" status.json
  grep -qE "\"pid\": *$other\b" status.json && fail 'a file was opened as an offer'
  end_good
  wait $half $other
}

# One process with many, and many processes with one each: only so many are taken.
test_many() {
  start_daemon
  chmod 777 .
  begin_good
  hostile make 10000 ready touch there await go &
  many=$!
  wait_for 40 test -e there
  pids=
  for i in $(seq 10); do
    hostile make 1 random ready flip 1 &
    pids="$pids $!"
  done
  wait $pids
  rss=$(awk '/^RssAnon/ { print $2 }' /proc/"$daemon"/status)
  at_most 131072 "$rss" "the daemon's own memory in KiB"
  end_good
  wait $many || :
}

# What another user can have said again and again is said a few times, and how often it was not.
test_log_is_not_flooded() {
  start_daemon
  chmod 777 .
  begin_good
  pids=
  for i in $(seq 60); do
    hostile make 1 touch "offered$i" await quiet &
    pids="$pids $!"
  done
  # the same program of a test beside is listed too, as one that the rules leave out
  taken() {
    [ "$("$heaptap" status --socket "$PWD/run/control" --json |
      grep -oE "\"exe\": *\"$PWD/bin/daemon_offer\"[^{}]*\"profiled\": *true" | wc -l)" -ge 50 ]
  }
  wait_for 40 taken
  touch quiet
  wait $pids || :
  end_good
  at_most 20 "$(grep -c "(daemon_offer): profiled" daemon.log)" 'lines about the offers of one user'
  matches "^heaptap: user $other_user: [0-9]+ more lines like \".*\" were held back" daemon.log
}

# It is there before the daemon, which then reads what it says of itself.
test_a_context_that_never_answers() {
  stage daemon_steps daemon_offer daemon_unanswered
  LD_PRELOAD=$PWD/bin/libheaptap.so "$PWD/bin/daemon_unanswered" "$PWD/ready" 2>unanswered.log &
  stuck=$!
  is_ready() { [ -e ready ] || ! kill -0 "$stuck"; }
  wait_for 20 is_ready
  [ -e ready ] || skip "$(cat unanswered.log)"
  start_daemon
  begin_good
  end_good
  kill "$stuck"
  wait "$stuck" || :
}
