# SPDX-License-Identifier: Apache-2.0
# Snapshots when a threshold is crossed (--on): how many there are, of which process, what they say, and none otherwise.

# begin OPTIONS...: a program whose memory goes as it is told; blocks of 1 MiB at this period are all counted as they are
begin() {
  mkfifo input
  "$heaptap" record -p 64K -i 0 -o out/%p-%n.pb.gz "$@" "$targets/threshold" <input >output 2>err &
  front=$!
  exec 9>input
  wait_for 20 grep -q ready output
  read -r pid _ <output
}

# tell LINE: returns when it was obeyed
tell() {
  local before
  before=$(wc -l <output)
  echo "$*" >&9
  wait_for 20 eval "[ \$(wc -l <output) -gt $before ]"
}

# looked [PID]: every threshold of the process was looked at after this was called; writes a profile without a kind
looked() {
  "$heaptap" snapshot "${1:-$pid}" >/dev/null
}

# written KIND [PID]: so many profiles there are
written() {
  find out -name "${2:-*}-0*-$1.pb.gz" | wc -l
}

# await COUNT KIND [PID]: until there are so many
await() {
  wait_for 20 eval "[ \$(written $2 ${3:-}) -ge $1 ]"
  equal "$1" "$(written "$2" "${3:-}")" "profiles of $2"
}

# causes KIND [PID]: what the profiles say, in order
causes() {
  local profile
  for profile in out/${2:-*}-0*-"$1".pb.gz; do
    comment_of "$profile" | sed -n "s/^snapshot: [0-9]*-$1, //p"
  done
}

# delay KIND: the time from the middle of the last allocation to the newest profile, for who reads the log
delay() {
  local file
  file=$(find out -name "*-$1.pb.gz" | sort | tail -n 1)
  echo "delay $1 $(awk -v end="$(stat -c %.6Y "$file")" 'END { print end - $NF }' output)"
}

finish() {
  exec 9>&-
  wait "$front"
  profile_check out/*.pb.gz
}

test_a_level_once() {
  begin --on rss=64M --on inuse=96M
  tell take 40
  looked
  equal 0 "$(written '*')" 'profiles below the levels'
  tell take 40
  await 1 rss
  delay rss
  tell take 40
  await 1 inuse
  delay inuse
  tell take 40
  looked
  finish
  equal '1 1' "$(written rss) $(written inuse)"
  causes rss >causes
  causes inuse >>causes
  matches '^rss [0-9.]+ MiB >= 64.0 MiB$' causes
  matches '^inuse (9[6-9]|1[012][0-9])\.[0-9] MiB \+- [0-9.]+ [KM]iB >= 96.0 MiB$' causes
  matches "^heaptap: pid $pid: snapshot 0002-rss, rss [0-9.]+ MiB >= 64.0 MiB: out/$pid-0002-rss.pb.gz$" err
  # Readers know what it is.
  "$heaptap" report "out/$pid-0002-rss.pb.gz" >report
  matches '0002-rss, rss [0-9.]+ MiB >= 64.0 MiB' report
  equal "0002-rss, $(causes rss)" "$("$heaptap" report --json "out/$pid-0002-rss.pb.gz" |
    python3 -c 'import json, sys; print(json.load(sys.stdin)["cause"])')"
  "$heaptap" ls -v out >list
  matches "$pid-0002-rss.pb.gz" list
  "$heaptap" diff out/*-rss.pb.gz out/*-inuse.pb.gz >difference
  matches '0003-inuse, inuse' difference
}

# What hovers about a level crossed it once; what fell well below it crosses it again.
test_a_level_often() {
  begin -q --on inuse=64M --on-limit 0
  tell take 65
  await 1 inuse
  for round in 1 2 3; do
    tell drop 4
    looked
    tell take 5
    looked
  done
  equal 1 "$(written inuse)" 'profiles of a heap that hovers'
  for round in 2 3 4; do
    tell drop 20
    looked
    tell take 20
    await $round inuse
  done
  finish
  equal 4 "$(written inuse)"
  ! grep . err || fail 'not quiet'
}

test_growth_that_is_slow() {
  begin -q --on inuse=+32M --on-limit 0
  for round in 1 2 3 4; do
    for step in 1 2 3 4; do
      tell take 8
    done
    await $round inuse
  done
  looked
  finish
  equal 4 "$(written inuse)"
  causes inuse >causes
  equal 4 "$(grep -cE '^inuse [0-9.]+ MiB \+- [0-9.]+ [KM]iB, \+3[2-9]\.[0-9] MiB >= \+32.0 MiB$' causes)"
}

test_growth_of_resident_memory() {
  begin -q --on rss=+48M --on-limit 0
  for round in 1 2; do
    tell take 30
    looked
    equal $((round - 1)) "$(written rss)"
    tell take 22 # the program's code and libc are resident too
    await $round rss
  done
  finish
  causes rss >causes
  equal 2 "$(grep -cE '^rss [0-9.]+ MiB, \+[456][0-9]\.[0-9] MiB >= \+48.0 MiB$' causes)"
}

# What fell and rose again to where it was has not grown.
test_growth_is_from_the_last_one() {
  begin -q --on inuse=+64M --on-limit 0
  tell take 70
  await 1 inuse
  tell drop 70
  looked
  tell take 100
  looked
  equal 1 "$(written inuse)"
  tell take 40
  await 2 inuse
  finish
}

test_every_so_many_bytes_allocated() {
  begin -q --on alloc=64M --on inuse=10M --on-limit 0
  for round in 1 2 3; do
    tell churn 63
    looked
    equal $((round - 1)) "$(written alloc)"
    tell churn 1
    await $round alloc
  done
  finish
  equal 0 "$(written inuse)" 'profiles by what is in use'
  causes alloc >causes
  matches '^alloc 192\.[0-9] MiB, \+64\.[0-9] MiB >= \+64.0 MiB$' causes
}

# The sampler does not look while it lasts: the kernel and the heap's peak know.
test_a_spike() {
  begin --on inuse=64M --on rss=256M
  tell take 2
  looked
  sampler=$(sampler_of "$front")
  kill -STOP "$sampler"
  tell burst 100
  tell map 300
  kill -CONT "$sampler"
  await 1 inuse
  looked # the crossing of rss may be in this one's causes
  finish
  for profile in out/*-0*.pb.gz; do
    comment_of "$profile"
  done >comments
  matches 'inuse 2\.[0-9] MiB \+- [0-9.]+ [KM]?i?B, was 10[0-9]\.[0-9] MiB >= 64.0 MiB' comments
  matches 'rss [0-9.]+ MiB, was 3[0-9][0-9]\.[0-9] MiB >= 256.0 MiB' comments
}

test_the_limit() {
  begin --on inuse=64M --on-limit 1h
  tell take 80
  await 1 inuse
  for round in 1 2; do
    tell drop 40
    looked
    tell take 40
    looked
  done
  tell drop 40
  finish
  equal 1 "$(written inuse)" 'profiles'
  comment_of "out/$pid-exit.pb.gz" >comments
  matches 'thresholds crossed 2 times without a snapshot \(--on-limit\)' comments
  equal 1 "$(grep -c "^heaptap: pid $pid crosses a threshold again within 3600 s (--on-limit): " err)"
}

# A crossing within the limit is not forgotten: if the value is still there when it ends, there is a snapshot.
test_after_the_limit() {
  begin -q --on inuse=64M --on-limit 500ms
  tell take 80
  await 1 inuse
  tell drop 40
  looked
  tell take 40
  await 2 inuse
  tell drop 80
  finish
  ! comment_of "out/$pid-exit.pb.gz" | grep 'thresholds crossed' || fail 'counted as suppressed'
}

# A child has what its parent had: it crosses nothing by being there.
test_a_forked_child_for_itself() {
  begin -q --on inuse=64M --on rss=64M --on inuse=+32M --on-limit 0
  tell take 80
  looked
  tell fork
  tell take 1
  child=$(tail -n 1 output | cut -d ' ' -f 1)
  [ "$child" != "$pid" ] || fail 'no child'
  looked "$child"
  tell take 25
  looked "$child"
  equal 0 "$(written '*' "$child")" 'profiles of the child'
  tell take 10
  await 1 inuse "$child"
  finish
  causes inuse "$child" >causes
  matches '^inuse 1[0-9]{2}\.[0-9] MiB \+- [0-9.]+ [KM]iB, \+3[2-9]\.[0-9] MiB >= \+32.0 MiB$' causes
}

# The clock's files do not push out the one that matters.
test_keep() {
  begin -q -i 50ms --keep 2 --on inuse=64M
  tell take 80
  await 1 inuse
  wait_for 20 eval 'find out | grep -E -- "-(001[2-9]|00[2-9].|0[1-9]..)\.pb"' # each is there for a moment only
  finish
  equal 1 "$(written inuse)"
  [ "$(find out -name "$pid-0*[0-9].pb.gz" | wc -l)" -le 3 ] || fail "the clock's are all there: $(ls out)"
}

# What was there when the sampler took over was crossed by nobody.
test_adopted() {
  need_root
  begin -q
  tell take 80
  sampler=$(sampler_of "$front")
  kill -KILL "$sampler"
  wait_for 20 eval '! kill -0 "$sampler" 2>/dev/null'
  "$heaptap" adopt -q -i 0 -o out/adopted-%n.pb.gz --on inuse=64M --on rss=64M --on inuse=+32M "$pid" 9>&- &
  adopter=$!
  wait_for 20 looked
  tell take 20
  looked
  equal 0 "$(written '*' adopted)" 'profiles by thresholds'
  tell take 20
  await 1 inuse adopted
  exec 9>&-
  wait "$front" || :
  wait $adopter
  profile_check out/adopted-*.pb.gz
}

test_memory_high() {
  memory_cgroup memory.soft_limit_in_bytes memory.high # of a new kernel's cgroup v1 the soft limit cannot be set
  begin -v --on memory.high --on-limit 0
  wait_for 20 grep -q "^heaptap: --on memory.high: no effect for pid $pid: .* is not set for cgroup " err
  echo "$pid" >"$cgroup/cgroup.procs"
  wait_for 20 grep -q "^heaptap: --on memory.high: watching memory.* 64.0 MiB of cgroup /${cgroup##*/}.* (pid $pid)" err
  tell take 40
  looked
  equal 0 "$(written '*')" 'profiles below the limit'
  tell take 40
  await 1 memory.high
  delay memory.high
  tell take 5
  looked
  tell drop 60
  looked
  tell take 45 # less than there was before
  await 2 memory.high
  finish
  rmdir "$cgroup"
  causes memory.high >causes
  equal 2 "$(grep -cE "^memory\.(high|soft_limit) of cgroup /${cgroup##*/}, [0-9.]+ MiB >= 64.0 MiB$" causes)"
}

test_what_cannot_be_watched() {
  equal 2 "$(status_of record --no-heap -e cpu-clock --on rss=1G true)"
  matches '^heaptap: --on is about heaps' err
  # Whether the cgroup of this test has a limit is not ours to say; doctor and record say the same.
  "$heaptap" doctor >doctor
  matches 'record --on memory.high' doctor
}
