# SPDX-License-Identifier: Apache-2.0
# A backend that stops working is replaced by the next, and the profile says so (capture_backend.c).

program=$targets/capture_backend

# start OPTION... : heaptap with the working program in the background; sets front and sampler
start() {
  "$heaptap" record -p 1 -o out.pb.gz "$@" "$program" work here 100000000 2>err &
  front=$!
  wait_for 10 test -e here
  sampler=$(ps -o pid=,comm= --ppid $front | awk '$2 == "heaptap-sampler" { print $1 }')
}

# goes_on [FILE]: the program allocates 5000 blocks more, whatever time that takes
goes_on() {
  local file=${1:-here} from
  wait_for 10 test -s "$file"
  from=$(cat "$file")
  further() { [ "$(cat "$file")" -ge $((from + 5000)) ]; }
  wait_for 30 further
}

# how_many BACKEND: stacks by this backend, as the comments say
how_many() {
  sed -n "s/^samples: .*$1 \([0-9]*\).*/\1/p" comments
}

# lost: stacks, for want of room on a busy machine
lost() {
  sed -n 's/^samples: .* taken, \([0-9]*\) lost.*/\1/p' comments
}

# finish: ends the program, reads the profile
finish() {
  touch here.end
  wait $front || fail "status $?: $(cat err)"
  profile_check out*.pb.gz
  comment_of out.pb.gz >comments
}

# disabled BACKEND NEXT WORDS: the event stands still in mid-run; the next backend takes over
disabled() {
  start -v -b "$1"
  goes_on
  "$program" disable "$sampler" >/dev/null || fail "status $?"
  wait_for 30 grep -q "no stacks received from the $1, switching to $2" err
  goes_on
  finish
  at_least 100 "$(how_many "by $1")" "stacks by $1"
  at_least 100 "$(how_many "$3")" "stacks by $2, afterwards"
  matches "backend changed: $4 \(breakpoint refused 0, no stacks came 1," comments
}

test_breakpoint_disabled() { disabled breakpoint copy 'copied by the hook' '0 programs to breakpoint, 1 to copy'; }

test_uprobe_disabled() {
  need_root
  disabled uprobe breakpoint 'by breakpoint' '1 programs to breakpoint, 0 to copy'
}

# That most samples come without it is no sign of life.
test_uprobe_disabled_while_stacks_are_walked() {
  need_root
  start -v -b auto -p 17K --compare-walks 1
  goes_on
  "$program" disable "$sampler" >/dev/null || fail "status $?"
  wait_for 60 grep -q "no stacks received from the uprobe, switching to" err
  finish
  at_least 100 "$(how_many 'walked by the hook')" 'stacks walked'
}

# Every backend down to the last: the second time it is the breakpoint that is disabled.
test_both_events_disabled() {
  need_root
  start -v -b uprobe --labels backend
  for gone in uprobe breakpoint; do
    goes_on
    "$program" disable "$sampler" >/dev/null || fail "status $?"
    wait_for 30 grep -q "no stacks received from the $gone" err
  done
  goes_on
  finish
  for way in 'by uprobe' 'by breakpoint' 'copied by the hook'; do
    at_least 100 "$(how_many "$way")" "stacks $way"
  done
  go tool pprof -tags -sample_index=alloc_objects out.pb.gz >tags 2>/dev/null
  for way in uprobe breakpoint copy; do
    matches "[0-9.]+%\): *$way\$" tags
    at_least 100000 "$(pprof_top out.pb.gz -unit=B -sample_index=alloc_space -tagfocus="backend=$way" | awk '$NF == "take" { print $4 + 0 }')" "bytes by $way"
  done
}

# The library is upgraded while the session runs: programs executed from then on map a file without a uprobe.
test_library_replaced() {
  need_root
  stage capture_backend
  "$heaptap" record -v -b uprobe -p 1 -o out/ sh -c "
    $targets/capture_backend work before 400
    cp bin/libheaptap.so new.so && mv new.so bin/libheaptap.so
    for i in 1 2 3; do $targets/capture_backend work after.\$i 100000000 & touch after.\$i.pid; wait \$!; done
    true" 2>err &
  front=$!
  for i in 1 2 3; do
    wait_for 30 test -e after.$i
    [ $i = 3 ] || wait_for 30 eval '[ $(grep -c "no stacks received from the uprobe, switching to breakpoint" err) -ge '$i' ]'
    goes_on after.$i
    touch after.$i.end
  done
  wait $front || fail "status $?: $(cat err)"
  profile_check out/*.exit.pb.gz
  # The third found the session wiser: it began with a breakpoint, and there was nothing to be noticed.
  last=$(ls -t out/heaptap.capture_backend.*.exit.pb.gz | head -n 1)
  comment_of "$last" >comments
  at_least 100 "$(how_many 'by breakpoint')" 'stacks by breakpoint'
  matches 'backend changed: [0-9]+ programs to breakpoint, 0 to copy \(breakpoint refused 0, no stacks came 2,' comments
}

test_no_debug_register_free() {
  preload=$HEAPTAP_PROGRAMS/libheaptap.so
  record -q -b breakpoint -p 1 -o out/ sh -c "unset LD_PRELOAD; $program hog $preload $program work here 5000; exit \$?" 2>err ||
    fail "status $?: $(cat err)"
  profile=$(only out/heaptap.capture_backend.*.exit.pb.gz)
  profile_check "$profile"
  comment_of "$profile" >comments
  at_least 5000 "$(($(how_many 'copied by the hook') + $(lost)))" 'stacks by copy'
  at_least 100 "$(how_many 'copied by the hook')" 'stacks by copy'
  matches 'backend changed: 0 programs to breakpoint, 1 to copy \(breakpoint refused 1,' comments
}

# Nothing of this happens where all is well but slow: the sampler stands still, the rings are full.
test_stopped_sampler_does_not_change_the_backend() {
  for backend in breakpoint $([ "$(id -u)" != 0 ] || echo uprobe); do
    rm -f here*
    start -b $backend
    for i in 1 2 3; do
      kill -STOP "$sampler"
      sleep 0.7
      kill -CONT "$sampler"
      sleep 0.1
    done
    finish
    ! grep -q 'backend changed' comments || fail "$backend: $(grep 'backend changed' comments)"
  done
}

# A breakpoint costs at every switch: a program with many gives it up, where the backend was our choice (of those that are
# left where a label needs a record of each sample, and none is walked).
test_many_context_switches() {
  stage capture_backend
  mkdir -m 777 place
  cd place
  unprivileged "$heaptap" record -v -p 1 --labels thread -o out.pb.gz "$targets/capture_backend" switch here >best 2>err &
  job=$!
  while kill -0 $job 2>/dev/null && ! grep -q 'times a second: stacks are copied' err; do
    sleep 0.1
  done
  touch here.end
  wait $job || fail "status $?: $(cat err)"
  profile_check out.pb.gz
  comment_of out.pb.gz >comments
  if ! grep -q 'backend changed' comments; then
    grep -q 'backend breakpoint' comments || skip "no breakpoints here: $(grep '^period' comments)"
    [ "$(cat best)" -gt 15000 ] || skip "this machine makes $(cat best) switches a second just now"
  fi
  matches 'backend changed: .* too many context switches 1\)' comments
}

# Where nearly every block is a sample, auto has the hook copy stacks and traps only when its buffers are full: nothing is
# lost. A backend that was asked for stays.
test_small_periods_are_copied() {
  record -q -p 1 -o auto.pb.gz "$program" work here 20000 2>err || fail "status $?: $(cat err)"
  profile_check auto.pb.gz
  comment_of auto.pb.gz >comments
  [ "$(uname -m)" != x86_64 ] || at_least 19000 "$(how_many 'walked by the hook')" 'stacks walked'
  # with a label that needs a record of each sample
  record -q -p 1 --labels thread -o auto.pb.gz "$program" work here 20000 2>err || fail "status $?: $(cat err)"
  profile_check auto.pb.gz
  comment_of auto.pb.gz >comments
  at_least 2000 "$(how_many 'copied by the hook')" 'stacks copied'
  for backend in breakpoint $([ "$(id -u)" != 0 ] || echo uprobe); do
    record -q -b $backend -p 1 -o $backend.pb.gz "$program" work here.$backend 20000 2>err || skip "no $backend here: $(cat err)"
    comment_of $backend.pb.gz >comments
    at_least 19000 "$(($(how_many "by $backend") + $(lost)))" "stacks by $backend"
    at_least 100 "$(how_many "by $backend")" "stacks by $backend"
  done
}

# While the sampler stands still, stacks go to the hook's buffers until these are full, then into the rings, and are lost
# only when both are. A ring for such periods has 64 MiB, with room for some 2000 stacks; little memory makes it smaller.
test_a_ring_for_small_periods() {
  need_root
  # on one processor: with one ring for each of many, all would never be full
  taskset -cp "$(sed -n 's/^Cpus_allowed_list:[[:space:]]*\([0-9]*\).*/\1/p' /proc/self/status)" $$ >/dev/null
  start --labels thread
  kill -STOP "$sampler"
  for i in 1 2 3 4; do goes_on; done
  kill -CONT "$sampler"
  finish
  way=$(sed -n 's/.*, backend \(uprobe\|breakpoint\),.*/\1/p' comments)
  [ -n "$way" ] || skip "no perf events here: $(grep '^period' comments)"
  at_least 1 "$(lost)" 'stacks lost'
  at_least 2000 "$(how_many 'copied by the hook')" 'stacks copied'
  room=$(awk '$1 == "MemTotal:" { print ($2 > 8000000) ? 1500 : 100 }' /proc/meminfo)
  at_least "$room" "$(how_many "by $way")" 'stacks in the rings'
}

# Above 16 KiB the kernel does it.
test_large_periods_are_not() {
  record -q -p 32K --labels thread -o x.pb.gz "$program" work here 200000 2>err || fail "status $?: $(cat err)"
  comment_of x.pb.gz >comments
  grep -q 'backend uprobe' comments || skip 'no uprobes here'
  at_least 10 "$(how_many 'by uprobe')" 'stacks by uprobe'
}

# A breakpoint makes each context switch dearer: a program of a third of a second is not to be over before it yields.
test_a_short_program_that_switches_often() {
  stage switches
  mkdir -m 777 profiles
  status=0
  unprivileged "$heaptap" record -q --labels thread -o profiles/x.pb.gz "$targets/switches" 300 >out || status=$?
  equal 0 $status
  comment_of profiles/x.pb.gz >comments
  grep -q 'backend breakpoint' comments || skip 'no breakpoints here'
  matches 'too many context switches 1\)' comments
  profile_check profiles/x.pb.gz
}

# -v says which backend it is, and why not a better one, in words that cannot be taken for an error.
test_which_and_why() {
  equal 0 "$(status_of record -v -b copy -o x.pb.gz true)"
  matches '^heaptap: stacks by copy, as asked for$' err
  equal 0 "$(status_of record -v -o x.pb.gz true)"
  matches '^heaptap: stacks by (uprobe, the best there is|(breakpoint|copy), since (uprobes|perf events) (are|do not work:) .*)' err
  [ "$(uname -m)" != x86_64 ] || matches '^heaptap: stacks by .*; known ones are walked by the program$' err
  equal 0 "$(status_of record -v --labels thread -o x.pb.gz true)"
  ! grep -q 'are walked' err || fail "$(cat err)"
  stage
  chmod 777 .
  equal 0 "$(status_of unprivileged "$heaptap" record -v -p 1M -o other.pb.gz true)"
  matches '^heaptap: stacks by (breakpoint|copy), since (uprobes|perf events) are not permitted \(kernel.perf_event_paranoid' err
}
