# SPDX-License-Identifier: Apache-2.0
# Targets and samplers that are killed or stopped (capture_survive.c). REPEAT=20 for a long run by hand: then the sampler
# is stopped for 10 s too.
# timeout: 300

survive=$targets/capture_survive
repeat=${REPEAT:-1}

backends() {
  [ "$(id -u)" != 0 ] || echo uprobe
  echo breakpoint copy
}

# rounds: every backend, as often as is asked for
rounds() {
  for round in $(seq "$repeat"); do
    backends
  done
}

# truth FIELD: bytes in use, bytes ever, steps
truth() {
  od -A n -t d8 -N 24 truth | tr '\n' ' ' | awk -v field="$1" '{ print $field }'
}

steps_above() {
  [ -s truth ] && [ "$(truth 3)" -gt "$1" ]
}

# start COMMAND...: heaptap in the background; sets front, sampler and target
start() {
  rm -rf truth* out
  "$heaptap" record -q "$@" 2>err &
  front=$!
  wait_for 10 test -s truth
  sampler=$(child_of $front heaptap-sampler)
  target=$(child_of $front capture_survive)
  [ -n "$sampler" ] && [ -n "$target" ] || fail 'not started'
}

# strike SIGNAL PID NAME: only if that is still what the number belongs to
strike() {
  equal "$3" "$(cat "/proc/$2/comm")" "process $2"
  kill "-$1" "$2"
}

# near WANTED GOT PERCENT WHAT
near() {
  awk -v w="$1" -v g="$2" -v p="$3" 'BEGIN { d = (g - w) / w * 100; exit !(d <= p && d >= -p) }' ||
    fail "$4: truth $1, profile $2"
}

test_target_killed_at_random() {
  for round in $(seq "$repeat"); do
    for backend in $(backends); do
      start -b "$backend" -p 4K -o out/ "$survive" load truth 10000 4
      wait_for 30 steps_above $((20000 + RANDOM))
      sleep "0.0$((RANDOM % 90 + 10))"
      strike KILL "$target" capture_survive
      status=0
      wait $front || status=$?
      equal 137 $status
      profile=$(only out/heaptap.capture_survive.*.exit.pb.gz)
      profile_check "$profile"
      # 4 threads with 4 MB each: 4000 samples and more, 1.6 % of standard error
      near "$(truth 1)" "$(total_of "$profile" inuse_space)" 10 "$backend: bytes in use"
      comment_of "$profile" | grep -q 'killed by SIGKILL' || fail 'the cause is not told'
    done
  done
}

test_target_killed_for_memory() {
  need_root
  group=/sys/fs/cgroup/memory/heaptap-test-$$
  mkdir $group 2>/dev/null || skip 'no memory controller of version 1'
  trap 'rmdir $group' EXIT
  echo 100M >$group/memory.limit_in_bytes
  for round in $(seq "$repeat"); do
    rm -rf truth out
    # The target alone is in the group.
    record -q -p 64K -o out/ sh -c "echo \$\$ >$group/cgroup.procs; exec $survive grow truth" 2>err && fail 'not killed'
    profile=$(only out/heaptap.capture_survive.*.exit.pb.gz)
    profile_check "$profile"
    near "$(truth 1)" "$(total_of "$profile" inuse_space)" 15 'bytes in use'
  done
}

test_sampler_killed_under_load() {
  for round in $(seq "$repeat"); do
    for backend in $(backends); do
      start -b "$backend" -p 64 -o out/ "$survive" load truth 10000 4
      wait_for 30 steps_above $((1000 + RANDOM))
      strike KILL "$sampler" heaptap-sampler
      wait_for 30 steps_above $(($(truth 3) + 20000))
      : >truth.end
      status=0
      wait $front || status=$?
      equal 0 $status "$backend: status of a target that checks itself"
      matches 'the sampler died' err # "; it goes on without it", or later if a writer of profiles holds the socket
    done
  done
}

# The books are the target's own: whatever the sampler misses costs stacks, never bytes.
test_sampler_stopped_while_the_target_works() {
  for backend in $(rounds); do
    start -b "$backend" -p 1 -o out/ "$survive" burst truth 100000 1000
    strike STOP "$sampler" heaptap-sampler
    : >truth.go
    wait_for 60 test -s truth.done
    strike CONT "$sampler" heaptap-sampler
    : >truth.end
    wait $front || fail "status $?"
    profile=$(only out/heaptap.capture_survive.*.exit.pb.gz)
    profile_check "$profile"
    # The program itself takes some more (stdio, paths), all of it small.
    at_least "$(truth 1)" "$(total_of "$profile" inuse_space)" "$backend: bytes in use"
    at_least "$(total_of "$profile" inuse_space)" "$(($(truth 1) + 20000))" "$backend: bytes in use, upper bound"
    at_least "$(truth 2)" "$(total_of "$profile" alloc_space)" "$backend: bytes"
    at_least "$(total_of "$profile" alloc_space)" "$(($(truth 2) + 100000))" "$backend: bytes, upper bound"
    comment_of "$profile" | grep -qE '[1-9][0-9]* lost stacks' || fail "$backend: nothing was lost?"
    "$heaptap" report "$profile" >text
    matches 'every allocation recorded, [1-9][0-9]* of [0-9]+ without its stack$' text
  done
}

# By what factor 10 million frees take longer while the sampler stands still: the ratio is printed, not judged.
test_stopped_sampler_does_not_slow_the_target() {
  for backend in $(rounds); do
    for how in running stopped; do
      start -b "$backend" -o out/ "$survive" burst truth 10000000 1000
      [ $how = running ] || strike STOP "$sampler" heaptap-sampler
      until=$((SECONDS + (repeat > 1 ? 10 : 0)))
      : >truth.go
      wait_for 60 test -s truth.done
      [ $how = running ] || wait_for 60 eval '[ $SECONDS -ge $until ]'
      [ $how = running ] || strike CONT "$sampler" heaptap-sampler
      : >truth.end
      wait $front || fail "status $?"
      eval "$how=$(cat truth.done)"
      profile_check out/heaptap.capture_survive.*.exit.pb.gz
    done
    echo "$backend: $(awk -v r="$running" -v s="$stopped" 'BEGIN { printf "%.2f", s / r }') times as long"
  done
}
