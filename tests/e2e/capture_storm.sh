# SPDX-License-Identifier: Apache-2.0
# Many programs in the same moment (capture_storm.c): each is profiled, or counted as not profiled.
# timeout: 400

storm=$targets/capture_storm

# quick_profiles: of the programs that the storm executed
quick_profiles() {
  find out -name 'heaptap.*.exit*.pb.gz' | grep -vc "\.$1\." || true
}

# unserved FILE: what that text says of programs that found no region, or gave up waiting before theirs came
unserved() {
  local dropped
  dropped=$(sed -n 's/.*dropped at the region socket: \([0-9]*\) connection.*/\1/p' "$1" | tail -n 1)
  echo $(($(missed_programs "$1") + ${dropped:-0}))
}

# accounts_for COUNT PID: profiles and missed programs are that many; sets missed
accounts_for() {
  profile=$(only out/heaptap.capture_storm."$2".exit.pb.gz)
  profile_check "$profile"
  comment_of "$profile" >comments
  missed=$(unserved comments)
  [ "$1" = "$(($(quick_profiles "$2") + missed))" ] || cat comments err >&2
  equal "$1" "$(($(quick_profiles "$2") + missed))" "profiles ($(quick_profiles "$2")) and programs counted as missed"
  [ "$missed" = 0 ] || equal "$missed" "$(unserved err)" 'missed programs, in the summary'
}

test_two_hundred_programs_at_once() {
  record -p 1 -o out/ sh -c "echo \$\$ >pid; exec $storm exec 200" 2>err || fail "status $?: $(tail -n 3 err)"
  accounts_for 200 "$(cat pid)"
  echo "$missed of 200 missed"
}

test_two_hundred_programs_without_root() {
  stage capture_storm
  mkdir -m 777 place
  cd place
  record_by_nobody() { unprivileged "$heaptap" record "$@"; }
  record_by_nobody -p 1 -o out/ sh -c "echo \$\$ >pid; exec $targets/capture_storm exec 200" 2>err || fail "status $?: $(tail -n 3 err)"
  accounts_for 200 "$(cat pid)"
  echo "$missed of 200 missed"
}

# regions PID COUNT: the sampler holds so many, spare ones and claimed ones
regions() { [ "$(ls -l "/proc/$1/fd" | grep -c '/memfd:heaptap (deleted)')" -ge "$2" ]; }

# A short session makes few; one that lasts is ready for a burst though no program came.
test_the_stock_of_regions_grows() {
  mkfifo wait
  "$heaptap" record -q -o out/ sh -c 'echo >ready; read -r line <wait' &
  front=$!
  wait_for 20 test -e ready
  sampler=$(sampler_of $front)
  wait_for 20 regions "$sampler" 256
  echo >wait
  wait $front || fail "status $?"
}

# Nobody restocks: what is there is used up, the others run unprofiled, without waiting, and say so.
test_sampler_stopped_during_the_storm() {
  "$heaptap" record -i 60s -p 1 -o out/ sh -c "echo \$\$ >pid; exec $storm exec 400 ready go done" 2>err &
  front=$!
  wait_for 20 test -e ready
  sampler=$(sampler_of $front)
  wait_for 20 regions "$sampler" 256
  kill -STOP "$sampler"
  : >go
  wait_for 60 test -e 'done'
  kill -CONT "$sampler"
  wait $front || fail "status $?: $(tail -n 3 err)"
  accounts_for 400 "$(cat pid)"
  at_least 100 "$missed" 'missed programs'
  at_least 100 "$(quick_profiles "$(cat pid)")" 'profiles'
}

# Few descriptors make a small stock, and a region each on top of it: still nobody is forgotten.
test_few_descriptors() {
  (
    ulimit -n 400
    record -p 1 -o out/ sh -c "echo \$\$ >pid; exec $storm exec 100" 2>err
  ) || fail "status $?: $(tail -n 3 err)"
  accounts_for 100 "$(cat pid)"
  echo "$missed of 100 missed"
}

# Programs of another user all ask for their regions at once, through the region socket.
test_programs_of_another_user_at_once() {
  need_root
  stage capture_storm
  # Again if the first of them, which executes the others, did not get its region within the 200 ms that it waits.
  for attempt in 1 2 3 4 5; do
    rm -rf out
    mkdir -m 777 out
    record -p 1 -o out/ sh -c "echo \$\$ >pid; exec setpriv --reuid 65534 --clear-groups $targets/capture_storm exec 60" 2>err ||
      fail "status $?: $(tail -n 3 err)"
    [ ! -e "out/heaptap.capture_storm.$(cat pid).exit.pb.gz" ] || break
  done
  accounts_for 60 "$(cat pid)"
  echo "$missed of 60 missed"
}

# 255 children of an image can be profiled at the same time; one more is counted.
test_more_children_than_places() {
  record -p 1 -o out/ "$storm" fork 300 2>err || fail "status $?: $(tail -n 3 err)"
  parent=$(sed -n 's/.*capture_storm (pid \([0-9]*\)) exited with status 0.*/\1/p' err | tail -n 1)
  count=$(find out -name 'heaptap.*.exit*.pb.gz' | wc -l)
  matches 'not profiled: [0-9]+ forked children' err
  children=$(sed -n 's/.*not profiled: \([0-9]*\) forked children.*/\1/p' err | tail -n 1)
  equal 301 $((count + children)) "profiles ($count) and children without a place ($children), and their parent ($parent)"
}

# A sampler that runs only when nobody else wants to, until COMMAND has ended: what came and went meanwhile must not keep
# it from the end.
test_short_programs_beside_a_slow_sampler() {
  cat >crowd <<'BASH'
for i in {1..250}; do cat /dev/null; grep -q x /dev/null; done
BASH
  "$heaptap" record -i 60s -q -o out/ bash -c 'for i in {1..8}; do bash crowd & done; wait; echo >ended' &
  front=$!
  # COMMAND runs once the sampler is ready.
  wait_for 20 eval 'sampler=$(child_of $front heaptap-sampler); [ -n "$sampler" ] && [ -n "$(child_of $front bash)" ]'
  chrt -i -p 0 "$sampler" || skip 'no SCHED_IDLE'
  wait_for 150 test -e ended
  chrt -o -p 0 "$sampler"
  profiles() { find out -name '*.pb.gz' 2>/dev/null | wc -l; }
  before=$(profiles)
  over() { [ "$(ps -o stat= -p $front | cut -c 1)" = Z ] || ! kill -0 $front 2>/dev/null; }
  goes_on() { [ "$(profiles)" -gt "$before" ] || over; }
  wait_for 30 goes_on
  wait_for 150 over
  wait $front || fail "status $?"
}
