# SPDX-License-Identifier: Apache-2.0
# heaptap daemon: processes are found, profiled, and taken up again by the next daemon.
# timeout: 60

. "$top/tests/daemon_lib.sh"

test_found_and_profiled() {
  start_daemon
  carry on hold 1000 1000 touch held await go drop 400 &
  target=$!
  wait_for 20 test -e held
  snapshot_all "$target"
  profile_check "$profile"
  reached_exactly "$profile" hold 'inuse_space 1000000' 'inuse_objects 1000'
  comment_of "$profile" >comments
  matches '^labels: service_name=steps' comments
  touch go
  wait $target
  wait_for 20 profile_of "$target" exit
  profile_check "$profile"
  reached_exactly "$profile" hold 'inuse_space 600000' 'inuse_objects 600'
  stop_daemon
}

# It was there before the daemon: a sweep finds it.
test_found_by_a_sweep() {
  stage daemon_steps daemon_offer
  carry touch there on hold 100 1000 touch held await go &
  target=$!
  wait_for 20 test -e there
  start_daemon
  wait_for 20 test -e held
  touch go
  wait $target
  wait_for 20 profile_of "$target" exit
  reached_exactly "$profile" hold 'inuse_space 100000'
  stop_daemon
}

# Counted from when the daemon has found it: it has run for longer than until the first snapshot of a new one.
test_the_first_snapshots_come_early() {
  stage daemon_steps daemon_offer
  configure
  sed -i '/^interval = 0/d' heaptap.conf
  carry touch there on hold 1000 1000 await go &
  target=$!
  wait_for 20 test -e there
  is_old() { [ "$(ps -o etimes= -p "$target")" -gt 6 ]; }
  wait_for 20 is_old
  start_daemon
  several() { [ "$(find store -name "*.$target.heap.pb.gz" | wc -l)" -ge 2 ]; }
  wait_for 30 several
  comment_of "$(find store -name "*.$target.heap.pb.gz" | sort | head -n 1)" >comments
  matches '^snapshot: 0001, after 5 s$' comments
  touch go
  wait $target
  stop_daemon
}

test_killed_and_taken_up_again() {
  start_daemon
  carry on hold 1000 1000 touch held await go drop 700 hold 500 1000 touch gone await end &
  target=$!
  wait_for 20 test -e held
  snapshot_all "$target"
  reached_exactly "$profile" hold 'inuse_space 1000000' 'inuse_objects 1000'
  first=$(identity_of "$profile")
  kill_daemon
  touch go # while no daemon is there
  wait_for 20 test -e gone
  start_daemon
  wait_for 20 grep -q "pid $target .*taken up again" daemon.log
  snapshot_all "$target"
  profile_check "$profile"
  # 300 of the 1,000 blocks of the first daemon's time are left, and all 500 that came meanwhile, with their stacks.
  equal 800000 "$(total_of "$profile" inuse_space)" 'in use'
  reached_exactly "$profile" hold 'inuse_space 800000' 'inuse_objects 800'
  equal "$first" "$(identity_of "$profile")" 'session and start of the process'
  touch end
  wait $target
  stop_daemon
}

# The store's lock is held, so that nothing is written: only so many of those who end may wait, and the others are
# counted. What waits is written when the lock is free.
test_more_end_than_can_be_written() {
  stage daemon_steps daemon_offer
  printf '[daemon]\nmemory = 16M\n' >memory.conf
  configure
  cat memory.conf >>heaptap.conf
  start_daemon
  carry on hold 1000 1000 touch held await end &
  other=$!
  wait_for 20 test -e held
  mkfifo locked
  flock store/.lock sh -c 'echo >locked; read line <locked' &
  locker=$!
  read line <locked
  pids=
  for i in $(seq 60); do
    carry on hold 100 1000 &
    pids="$pids $!"
  done
  wait $pids
  dropped() { "$heaptap" status --socket "$PWD/run/control" | tr -s '\n ' ' ' | sed -n 's/.* \([0-9]*\) processes left no profile, because more ended than could be written: .*/\1/p'; }
  some_dropped() { [ "$(dropped)" -gt 0 ]; }
  wait_for 30 some_dropped
  matches 'processes left no profile, because more ended than could be written \(the last: daemon_steps' daemon.log
  echo >locked
  wait $locker
  all() { [ $(($(ls store/steps/*/*.exit*.pb.gz 2>/dev/null | wc -l) + $(dropped))) = 60 ]; }
  wait_for 60 all || fail "$(ls store/steps/*/*.exit*.pb.gz | wc -l) written, $(dropped) dropped"
  snapshot_all "$other"
  reached_exactly "$profile" hold 'inuse_space 1000000'
  comment_of "$profile" >comments
  matches 'processes left no profile, because more ended than could be written: [0-9]+ samples' comments
  touch end
  wait $other
  stop_daemon
}

# What waits for others to be written with it is written when the daemon is told to end.
test_ended_just_before_the_daemon() {
  start_daemon
  carry on hold 100 1000 touch held await go &
  target=$!
  wait_for 20 test -e held
  touch go
  wait $target
  known() { ! "$heaptap" status --socket "$PWD/run/control" --json $target | grep -q '"profiled": *true'; }
  wait_for 20 known
  stop_daemon
  profile=$(only store/steps/*/*.$target.exit.pb.gz)
  profile_check "$profile"
  reached_exactly "$profile" hold 'inuse_space 100000'
}

# SIGTERM: the process runs on and samples; nothing is left of the daemon but the store.
test_ended_and_begun_again() {
  start_daemon
  carry on hold 10 1000 touch held await go hold 90 1000 touch more await end &
  target=$!
  wait_for 20 test -e held
  stop_daemon
  [ ! -e run/control ] || fail 'the socket is left'
  touch go
  wait_for 20 test -e more
  start_daemon
  wait_for 20 grep -q "pid $target .*taken up again" daemon.log
  touch end
  wait $target
  wait_for 20 profile_of "$target" exit
  equal 100000 "$(total_of "$profile" inuse_space)" 'in use'
  reached_exactly "$profile" hold 'inuse_space 100000' 'inuse_objects 100'
  stop_daemon
}

# A child has its own books; what it inherited is its parent's too.
test_forked_child() {
  start_daemon
  carry on hold 100 1000 fork hold 50 1000 touch held await go &
  target=$!
  wait_for 20 test -e held
  touch go
  wait $target
  parent_done() { profile_of "$target" exit; }
  wait_for 20 parent_done
  reached_exactly "$profile" hold 'inuse_space 100000'
  child_done() { ls store/steps/*/*.exit.pb.gz | grep -v "\.$target\." | grep -q .; }
  wait_for 20 child_done
  profile=$(ls store/steps/*/*.exit.pb.gz | grep -v "\.$target\.")
  reached_exactly "$profile" hold 'inuse_space 150000'
  stop_daemon
}

# A thread takes the place, and has ended before the daemon looks: the process goes on, and so do its books.
test_noticed_by_a_thread_that_ended() {
  stage daemon_steps daemon_offer
  carry thread 3 touch there await stopped on on hold 100 1000 touch held await go drop 40 &
  target=$!
  wait_for 20 test -e there
  start_daemon
  turned_on() { grep -q "pid $target (daemon_steps): profiled" daemon.log; }
  wait_for 20 turned_on
  kill -STOP "$daemon"
  touch stopped
  wait_for 20 test -e held
  kill -CONT "$daemon"
  snapshot_all "$target"
  reached_exactly "$profile" hold 'inuse_space 100000'
  touch go
  wait $target
  wait_for 20 profile_of "$target" exit
  reached_exactly "$profile" hold 'inuse_space 60000'
  stop_daemon
}

# The parent has ended before the daemon looks: the child is the first of its image.
test_child_of_a_parent_that_left() {
  stage daemon_steps daemon_offer
  (carry leave touch child on hold 100 1000 touch held await go)
  wait_for 20 test -e child
  start_daemon
  wait_for 20 test -e held
  touch go
  found() { ls store/steps/*/*.exit.pb.gz 2>/dev/null | grep -q .; }
  wait_for 20 found
  profile=$(only store/steps/*/*.exit.pb.gz)
  reached_exactly "$profile" hold 'inuse_space 100000'
  stop_daemon
}

test_executed_program() {
  start_daemon
  carry on hold 100 1000 exec "$PWD/bin/daemon_steps" on hold 200 1000 touch held await go &
  target=$!
  wait_for 20 test -e held
  touch go
  wait $target
  two() { [ "$(ls store/steps/*/*."$target".exit*.pb.gz 2>/dev/null | wc -l)" = 2 ]; }
  wait_for 20 two
  set -- store/steps/*/*."$target".exit*.pb.gz
  equal 300000 "$(sums inuse_space "$@")" 'in use of both programs'
  stop_daemon
}

# A program of several names, as Debian's redis-server is, has the one by which it was executed, in its profile too.
test_called_by_a_link() {
  start_daemon
  ln -s daemon_steps bin/other_name
  LD_PRELOAD=$PWD/bin/libheaptap.so "$PWD/bin/other_name" on hold 100 1000 touch held await end &
  target=$!
  wait_for 20 test -e held
  snapshot_all "$target"
  comment_of "$profile" | grep -q "comm=other_name " || { comment_of "$profile" >&2; fail 'it has the name of the file'; }
  go tool pprof -raw "$profile" 2>/dev/null | grep -q "/bin/other_name" || fail 'its mapping has the name of the file'
  touch end
  wait "$target"
  stop_daemon
}
