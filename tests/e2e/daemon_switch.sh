# SPDX-License-Identifier: Apache-2.0
# What turns the daemon off, for all or for some: the file `off`, the environment, rules, the crash-loop guard.
# timeout: 60

. "$top/tests/daemon_lib.sh"

# said REGEX: the daemon has said it
said() {
  grep -qE -- "$1" daemon.log
}

# The file stops everything, and its removal begins it again. What is freed meanwhile is seen.
test_file_off() {
  start_daemon
  carry on hold 1000 1000 touch held await off1 hold 500 1000 drop 700 touch done1 await off2 hold 100 1000 touch done2 await end &
  target=$!
  wait_for 20 test -e held
  touch run/off
  wait_for 5 said 'nothing is sampled until it is removed'
  touch off1
  wait_for 20 test -e done1
  rm run/off
  wait_for 5 said 'sampling goes on'
  touch off2
  wait_for 20 test -e done2
  snapshot_all "$target"
  # 1,000 blocks of before, the last 500 of which no sample was taken were freed first, then 200 of these; then 100 more
  equal 900000 "$(total_of "$profile" inuse_space)" 'in use'
  touch end
  wait $target
  stop_daemon
}

# Nothing is written either: not what is due, not what is asked for, not the last profile of who ends. That is said,
# and counted.
test_off_writes_nothing() {
  stage daemon_steps daemon_offer
  configure 'interval = 1s'
  sed -i '/^interval = 0/d' heaptap.conf
  start_daemon
  carry on hold 1000 1000 touch held await go &
  target=$!
  carry on hold 1000 1000 touch held2 await end &
  other=$!
  wait_for 20 test -e held
  wait_for 20 test -e held2
  profiles() { ls store/*/*/* 2>/dev/null | sort; }
  wait_for 20 test -e store/steps
  touch run/off
  wait_for 5 said 'nothing is sampled until it is removed, and nothing written'
  idle() { [ -z "$(cat "/proc/$daemon/task/$daemon/children")" ]; } # what was begun before is on disk
  sleep 2
  wait_for 20 idle
  profiles >before
  equal 1 "$(status_of "$heaptap" snapshot --socket "$PWD/run/control" --all 2>err)" 'status of snapshot'
  matches 'everything is off .*, so nothing is written' err
  kill -USR1 "$daemon"
  wait_for 5 said 'no snapshots: everything is off while .*/run/off exists'
  touch go
  wait $target
  dropped() { "$heaptap" status --socket "$PWD/run/control" | tr -s '\n ' ' ' | grep -q '1 processes left no profile, because everything was off when they ended: [0-9]* samples'; }
  wait_for 10 dropped
  sleep 2 # more than an interval
  profiles >after
  cmp before after || fail "written: $(diff before after)"
  rm run/off
  wait_for 5 said 'sampling goes on'
  snapshot_all "$other"
  profile_check "$profile"
  comment_of "$profile" >comments
  matches '1 processes left no profile, because everything was off' comments
  touch end
  wait $other
  stop_daemon
}

test_off_at_the_start() {
  mkdir -p run
  touch run/off
  start_daemon
  carry touch there await go on hold 100 1000 touch held await end &
  target=$!
  wait_for 20 test -e there
  sleep 1
  said "pid $target" && fail 'profiled although everything is off'
  rm run/off
  touch go
  wait_for 20 test -e held
  touch end
  wait $target
  stop_daemon
}

# What an earlier daemon has left on is turned off by the next one, too.
test_off_when_no_daemon_is_there() {
  start_daemon
  carry on hold 1000 1000 touch held await go off hold 500 1000 touch more await end &
  target=$!
  wait_for 20 test -e held
  kill_daemon
  touch run/off go
  start_daemon
  wait_for 20 test -e more
  rm run/off
  wait_for 20 said "pid $target .*taken up again"
  snapshot_all "$target"
  equal 1000000 "$(total_of "$profile" inuse_space)" 'in use'
  touch end
  wait $target
  stop_daemon
}

# A reload decides again about everybody, and turns nobody on.
test_reloaded_while_off() {
  start_daemon
  carry on hold 1000 1000 touch held await go off hold 500 1000 touch more await go2 hold 500 1000 touch most await end &
  target=$!
  wait_for 20 test -e held
  touch run/off go
  wait_for 20 test -e more
  kill -HUP "$daemon"
  wait_for 10 said 'configuration read again'
  touch go2
  wait_for 20 test -e most
  rm run/off
  wait_for 5 said 'sampling goes on'
  snapshot_all "$target"
  equal 1000000 "$(total_of "$profile" inuse_space)" 'in use'
  touch end
  wait $target
  stop_daemon
}

# The process that made the offer has ended: its child is denied all the same, though it is known only later.
test_child_denied() {
  start_daemon
  (carry on hold 100 1000 leave touch child await go off hold 100 1000 touch most await end)
  wait_for 20 test -e child
  configure '[deny]' "exe = $PWD/bin/daemon_st*"
  kill -HUP "$daemon"
  wait_for 10 said 'configuration read again'
  touch go
  wait_for 20 test -e most
  touch end
  stop_daemon
}

test_disabled_by_the_environment() {
  start_daemon
  HEAPTAP_DISABLE=1 carry touch there await go &
  target=$!
  wait_for 20 test -e there
  carry on touch other await go &
  other=$!
  wait_for 20 test -e other # a sweep, or a notice, of later
  grep -q memfd:heaptap /proc/$target/maps && fail 'it offers a region'
  said "pid $target " && fail 'it is profiled'
  touch go
  wait $target $other
  stop_daemon
}

# [deny] wins over a service; a reload applies it to what is profiled already, and a broken file changes nothing.
test_rules_reloaded() {
  start_daemon
  carry on hold 100 1000 touch held await go hold 100 1000 touch more await go2 hold 100 1000 touch most await end &
  target=$!
  wait_for 20 test -e held
  echo 'nonsense here' >>heaptap.conf
  kill -HUP "$daemon"
  wait_for 10 said 'heaptap.conf:[0-9]+: .*; the old configuration is in force'
  touch go
  wait_for 20 test -e more
  snapshot_all "$target"
  equal 200000 "$(total_of "$profile" inuse_space)" 'in use after a broken configuration'
  configure '[deny]' "exe = $PWD/bin/daemon_st*"
  kill -HUP "$daemon"
  wait_for 10 said 'configuration read again'
  touch go2
  wait_for 20 test -e most
  snapshot_all "$target"
  equal 200000 "$(total_of "$profile" inuse_space)" 'in use after it was denied'
  touch end
  wait $target
  stop_daemon
}

# What `heaptap detach` advises of a process that the daemon profiles does what it says.
test_profile_no_reloaded() {
  start_daemon
  carry on hold 100 1000 touch held await go hold 100 1000 touch more await end &
  target=$!
  wait_for 20 test -e held
  wait_for 20 said "pid $target "
  equal 1 "$(status_of "$heaptap" detach "$target")"
  matches "^heaptap: pid $target is profiled by the daemon \(pid $daemon\): a \[service NAME\] of heaptap\.conf that matches it, with profile = no, and kill -HUP $daemon end that; " err
  sed -i 's/^profile = yes/profile = no/' heaptap.conf
  kill -HUP "$daemon"
  wait_for 10 said 'configuration read again'
  touch go
  wait_for 20 test -e more
  snapshot_all "$target"
  equal 100000 "$(total_of "$profile" inuse_space)" 'in use after profile = no'
  touch end
  wait $target
  stop_daemon
}

# While everything is off nothing is written, and the store stays within its limits all the same, as soon as they change.
test_store_is_kept_while_nothing_is_written() {
  stage daemon_steps daemon_offer
  mkdir run
  touch run/off
  start_daemon
  local now old number
  now=$(date +%s)
  old=store/steps/2020-01-01/101500.7.exit.pb.gz
  mkdir -p "${old%/*}"
  echo old >$old
  for number in $(seq 40); do
    file=$(date -u -d "@$((now - 100 + number))" +store/steps/%F/%H%M%S.7.heap.pb.gz)
    mkdir -p "${file%/*}"
    head -c 50000 /dev/zero >"$file"
  done
  configure '[daemon]' 'disk = 1M'
  kill -HUP "$daemon"
  is_kept() { [ ! -e $old ] && [ "$(du -sk store | cut -f 1)" -le 1024 ]; }
  wait_for 20 is_kept
  ls "$file" >/dev/null
  is_known() { "$heaptap" status --socket "$PWD/run/control" | grep -qE 'disk [0-9.]+ KiB of 1.0 MiB'; }
  wait_for 20 is_known
  stop_daemon
}

test_checked() {
  stage daemon_steps daemon_offer
  configure
  equal 0 "$(status_of "$heaptap" daemon --config heaptap.conf --check)" 'status of --check'
  equal ok "$(cat out)"
  configure 'period = 4K' 'samples-per-hour = 100'
  equal 2 "$(status_of "$heaptap" daemon --config heaptap.conf --check)" 'status of --check'
  matches 'heaptap.conf:[0-9]+: ' out
  equal 2 "$(status_of "$heaptap" daemon --config heaptap.conf --store s --socket "$PWD/run/control")" 'status'
  matches 'heaptap.conf:[0-9]+: ' err
}

# Three crashes soon after profiling began deny the program, in this daemon and in the next.
test_crash_loop() {
  start_daemon
  for round in 1 2 3; do
    status=0
    (carry on hold 10 1000 crash 11) || status=$?
    equal 139 $status 'status of the crash'
  done
  wait_for 20 said 'daemon_steps is not profiled any more: 3 deaths, the last by SIGSEGV, within 30 s of the start of profiling'
  carry touch there await go &
  target=$!
  wait_for 20 test -e there
  stop_daemon
  start_daemon
  matches '3 deaths, the last by SIGSEGV.*daemon_steps' store/.state/denied
  carry touch there2 await go &
  other=$!
  wait_for 20 test -e there2
  sleep 3
  said "pid ($target|$other) " && fail 'profiled although denied'
  # Whoever deletes the line and reloads gets it back.
  : >store/.state/denied
  kill -HUP "$daemon"
  wait_for 20 said "pid $other "
  touch go
  wait $target $other
  stop_daemon
}

# Neither a child's crash nor that of a program that was executed is the guard's business.
test_crashes_of_others() {
  start_daemon
  for round in 1 2 3 4; do
    (carry on hold 10 1000 fork crash 11) || :
    (carry on hold 10 1000 exec /bin/sh -c 'kill -SEGV $$') || :
  done
  carry on touch held await go &
  wait_for 20 test -e held
  touch go
  wait $!
  said 'not profiled any more' && fail 'denied'
  stop_daemon
}

# A library and a daemon of different versions leave each other alone.
test_other_version() {
  start_daemon
  "$PWD/bin/daemon_offer" abi 77 touch there await go &
  target=$!
  wait_for 20 test -e there
  carry on touch held await go &
  other=$!
  wait_for 20 test -e held
  shown() {
    "$heaptap" status --socket "$PWD/run/control" --json >status.json
    grep -q 'ABI 77' status.json
  }
  wait_for 20 shown
  matches "\"comm\": *\"daemon_offer\"" status.json
  touch go
  wait $target $other
  stop_daemon
}
