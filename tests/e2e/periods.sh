# SPDX-License-Identifier: Apache-2.0
# A new period is in force from the next allocation on, in every thread, whatever it has been counting down.
# timeout: 120

. "$HEAPTAP_TOP/tests/attach.sh"
. "$HEAPTAP_TOP/tests/daemon_lib.sh"

# work WHO COUNT BYTES
work() {
  worked=$((${worked:-0} + 1))
  echo "$*" >&7
  wait_for 30 said_times done $worked
}

# exact PROFILE FUNCTION: 200 blocks of 100 bytes
exact() {
  reached_exactly "$1" "$2" 'alloc_objects 200' 'alloc_space 20000' 'inuse_objects 200' 'inuse_space 20000'
}

# attached_exactly: at period 1 all is there that anybody allocates
attached_exactly() {
  attach -p 1
  for who in main thread fresh child; do work $who 200 100; done
  detach
  profile=$(only p/heaptap.periods."$target".detach.pb.gz)
  profile_check "$profile"
  for who in main thread fresh; do exact "$profile" ${who}_hold; done
  exact "$(only p/heaptap.periods.*.exit.pb.gz)" child_hold
  "$heaptap" report "$profile" >report
  matches '^  every allocation recorded since heaptap attached$' report
  rm -r p
}

# attached_after WHO PERIOD...: at each of these WHO allocates a little, and so begins an interval; then at 1, twice
attached_after() {
  local sleepers=$1 period
  shift
  rm -f in
  worked=0
  running "$targets/periods"
  for period; do
    attach -p "$period"
    for who in $sleepers; do work "$who" 1 100; done
    detach
    rm -r p
    sleepers=main # the others sleep from now on
  done
  attached_exactly
  attached_exactly
  finish
}

test_attached_again() {
  attached_after 'main thread' 1
  attached_after 'main thread' 512K
  attached_after 'main thread' 64K
  attached_after 'main thread' 64K 1M
  attached_after 'main thread' 512K 64K 4K
  attached_after main 512K
}

# The numbers of what threads watch are used again.
test_attached_many_times() {
  attached_after 'main thread' 16M 16M 16M 16M 16M 16M 16M 16M
}

# Of 4K: blocks of 1,000 bytes are samples with a probability of 0.2166.
test_attached_with_a_smaller_period() {
  running "$targets/periods"
  attach -p 16M
  for who in main thread; do work $who 1 100; done
  detach
  rm -r p
  attach -p 4K
  for who in main thread; do work $who 1000 1000; done
  detach
  profile=$(only p/heaptap.periods."$target".detach.pb.gz)
  for who in main thread; do # one in a million: 4.9 standard errors, of 60.1 blocks
    objects=$("$readers/oracle" -reach "^${who}_hold\$" "$profile" | awk '$1 == "reach" && $2 == "alloc_objects" { print $3 }')
    at_least 705 "${objects:-0}" "objects of $who"
    at_least "${objects:-0}" 1295 "objects of $who, at most"
  done
  finish
}

# ---- the daemon's rules

# carried: the program, which carries the library; it has begun intervals of the offer's period
carried() {
  stage periods
  mkfifo in
  LD_PRELOAD=$PWD/bin/libheaptap.so "$PWD/bin/periods" <in >said &
  target=$!
  exec 7>in
  wait_for 20 says ready
  worked=0
  for who in main thread; do work $who 10 100; done
}

logged() { grep -qE "$1" daemon.log; }

# rule PERIOD: the daemon reads it and says so
rule() {
  configure
  sed -i "s/^period = .*/period = $1/" heaptap.conf
  [ -z "${daemon:-}" ] && return
  before=$(grep -c 'configuration read again' daemon.log || :)
  kill -HUP "$daemon"
  again() { [ "$(grep -c 'configuration read again' daemon.log)" -gt "$before" ]; }
  wait_for 20 again
}

# Numbers of what is in use now, all of which stays: differences are what was allocated in between.
in_use() {
  snapshot_all "$target"
  profile_check "$profile"
  "$heaptap" report "$profile" >report
  echo "$(total_of "$profile" inuse_objects) $(total_of "$profile" inuse_space)"
}

test_offered() {
  carried
  rule 1
  start_daemon 7>&- # whose end would not be the target's
  wait_for 20 logged "pid $target .*profiled"
  for who in main thread fresh child; do work $who 200 100; done
  snapshot_all "$target"
  for who in main thread fresh; do exact "$profile" ${who}_hold; done
  "$heaptap" report -v "$profile" >report
  matches '^  every allocation recorded since a daemon took over$' report
  matches '^  taken over [0-9.]+ s after the start$' report
  exec 7>&-
  wait $target
  stop_daemon
}

# Exact as soon as the rule says 1, also where a thread has slept through several rules; and the profile does not say that it is
# exact, since it was not from the start.
test_rules_change() {
  carried
  rule 16M
  start_daemon 7>&- # whose end would not be the target's
  wait_for 20 logged "pid $target .*profiled"
  for who in main thread; do work $who 10 100; done
  rule 4K
  work main 1000 1000
  in_use >was
  at_least 705 "$(cut -d ' ' -f 1 was)" 'objects'
  at_least "$(cut -d ' ' -f 1 was)" 1295 'objects, at most'
  for period in 16M 64K 16M 64K 16M 64K; do rule $period; done
  in_use >was
  rule 1
  for who in main thread; do work $who 200 100; done
  in_use >is
  equal "400 40000" "$(paste -d ' ' is was | awk '{ print $1 - $3, $2 - $4 }')" 'what was allocated since the rule'
  ! grep -q 'every allocation recorded' report || fail 'it says that every allocation is recorded'
  comment_of "$profile" >comments
  matches '^the period was lowered to 1 B at .*Z: that of the profile is the largest before, ' comments
  exec 7>&-
  wait $target
  stop_daemon
}
