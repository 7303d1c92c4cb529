# SPDX-License-Identifier: Apache-2.0
# The sampler dies; its target runs on, and another sampler goes on with the books.
# timeout: 60

ready() { [ -e ready ]; }

# The sampler whose front is $1.
sampler_of() {
  ps -o pid=,comm= --ppid "$1" | awk '$2 == "heaptap-sampler" || $2 == "heaptap" {print $1}' | head -n 1
}

# Starts outlive under heaptap, with these options, and sets front, sampler and target.
start_outlive() {
  "$heaptap" record -q -p 1 -o first/ "$@" "$targets/outlive" &
  front=$!
  wait_for 20 ready
  sampler=$(sampler_of $front)
  target=$(child_of $front outlive)
  [ -n "$sampler" ] && [ -n "$target" ] || fail "no sampler or no target"
}

test_target_outlives_its_sampler() {
  start_outlive
  kill -KILL "$sampler"
  touch go
  status=0
  wait $front || status=$?
  [ $status = 7 ] || fail "the target's status is $status"
}

# The options are the first sampler's.
adopt_outlive() {
  [ "$(id -u)" = 0 ] || skip "opening another process' mapping needs root"
  start_outlive "$@"
  "$heaptap" adopt "$target" 2>err && fail "adopted although its sampler is alive"
  grep -q 'sampler is alive' err || fail "$(cat err)"
  kill -KILL "$sampler"
  gone() { ! kill -0 "$sampler" 2>/dev/null; }
  wait_for 10 gone
  "$heaptap" adopt -v -o second/ "$target" 2>adopt.log &
  adopter=$!
  adopted() { grep -q adopted adopt.log; }
  wait_for 20 adopted
  taken_over() {
    "$heaptap" snapshot "$target" >out 2>&1 && "$readers/oracle" -func "$(cat out)" | grep -q 'before restart\]'
  }
  wait_for 20 taken_over
  # It has no front: its parent is the user's shell, which nobody profiles.
  equal 1 "$(status_of "$heaptap" snapshot $$)" 'status of a snapshot of the shell'
  equal '' "$(cat out)" 'profiles of the shell'
  touch go
  wait $front || true
  wait $adopter || fail "$(cat adopt.log)"
  profile=$(only second/heaptap.outlive.*.exit.pb.gz)
  profile_check "$profile"
  # Exact, at period 1: the 200 of 400 blocks of before() that are left have the stacks that the first sampler
  # has logged in the region.
  "$readers/oracle" -func "$profile" >rows
  grep -E "^func	inuse_space	20000000	20000000	before" rows || fail "$(cat rows)"
  grep -E "^func	alloc_space	40000000	40000000	before" rows || fail "$(cat rows)"
  # Of those that were freed nobody knows the stacks: counted as lost, in the profile and in the summary.
  grep -E "^func	alloc_space	[0-9]+	[0-9]+	\\[unknown: sampled before restart\\]" rows || fail "$(cat rows)"
  comment_of "$profile" >comments
  matches '^samples: [0-9]+ taken, [0-9]+ lost stacks, sampled before restart [0-9]+' comments
  matches 'samples [0-9]+ taken, [0-9]+ without a stack; sampled before restart: [0-9]+' adopt.log
  grep -E "^func	inuse_space	15000000	15000000	after" rows || fail "$(cat rows)"
}

test_another_sampler_adopts() {
  adopt_outlive -b auto
}

test_another_sampler_adopts_what_was_copied() {
  adopt_outlive -b copy
}

# What the adopter opens first is the target's shared memory: it must not become descriptor 2, or the log's lines are
# written over its header, and nobody can adopt the process again.
test_log_does_not_reach_the_shared_memory() {
  [ "$(id -u)" = 0 ] || skip "opening another process' mapping needs root"
  start_outlive
  kill -KILL "$sampler"
  gone() { ! kill -0 "$sampler" 2>/dev/null; }
  wait_for 10 gone
  "$heaptap" adopt -v -i 200ms -o second/ "$target" 2>&- &
  sampler=$!
  adopted() { ls second/heaptap.outlive.*.0001.pb.gz >/dev/null 2>&1; }
  wait_for 20 adopted
  kill -KILL "$sampler"
  wait "$sampler" 2>/dev/null || :
  "$heaptap" adopt -q -o third/ "$target" 2>err &
  adopter=$!
  third() { "$heaptap" snapshot "$target" >out 2>&1 || ! kill -0 "$adopter" 2>/dev/null; }
  wait_for 20 third
  touch go
  wait $front || true
  wait $adopter || fail "$(cat err)"
  profile_check third/heaptap.outlive.*.exit.pb.gz
}

# What an earlier sampler counted was not allocated in the time of any of this one's deltas.
test_deltas_begin_with_the_adoption() {
  [ "$(id -u)" = 0 ] || skip "opening another process' mapping needs root"
  start_outlive
  kill -KILL "$sampler"
  gone() { ! kill -0 "$sampler" 2>/dev/null; }
  wait_for 10 gone
  "$heaptap" adopt -q --delta -i 1s -o second/ "$target" &
  adopter=$!
  two_deltas() { [ "$(ls second/heaptap.outlive.*-delta.pb.gz 2>/dev/null | wc -l)" -ge 2 ]; }
  wait_for 20 two_deltas
  touch go
  wait $front || true
  wait $adopter || fail "the adopter's status is $?"
  for profile in second/heaptap.outlive.*-delta.pb.gz; do
    "$readers/oracle" -func "$profile" >rows
    ! grep -E '(before|before restart\])$' rows || fail "$profile has what was allocated before it"
  done
}

test_not_to_be_adopted() {
  sleep 30 &
  "$heaptap" adopt $! 2>err && fail "adopted a stranger"
  kill $!
  grep -Eq 'not being profiled|needs root' err || fail "$(cat err)"
  status=0
  "$heaptap" adopt nonsense 2>err || status=$?
  [ $status = 2 ] || fail "status $status"
}
