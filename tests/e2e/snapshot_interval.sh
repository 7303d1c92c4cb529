# SPDX-License-Identifier: Apache-2.0
# Snapshots by the clock, and by request; what is kept of them.

# held: a program that holds what it allocates until a byte comes, then exits
held() {
  mkfifo input 2>/dev/null || :
  "$heaptap" record -p 1K "$@" "$targets/snapshot_signal" wait <input >output 2>err &
  front=$!
  exec 9>input
  wait_for 20 grep -q ready output
  pid=$(child_of "$front" snapshot_signal)
}

finish() {
  exec 9>&-
  wait "$front"
}

test_every_interval() {
  held -q -i 100ms -o out/%n.pb.gz
  wait_for 20 test -e out/0005.pb.gz
  finish
  profile_check out/*.pb.gz
  comment_of out/0003.pb.gz >comments
  matches '^snapshot: 0003, every 0.1 s$' comments
  at_least 900000 "$(total_of out/0003.pb.gz inuse_space)" 'in use'
  equal 1 "$(find out -name 'exit*' | wc -l)" 'exit profiles'
}

# Beside each other: where an interval is asked for, none comes early.
test_the_first_come_early() {
  mkfifo gate
  "$heaptap" record -q -p 1K -i 60s -o asked/%n.pb.gz "$targets/snapshot_signal" wait <gate >/dev/null 2>&1 &
  other=$!
  exec 8>gate
  held -q -o out/%n.pb.gz
  wait_for 30 test -e out/0002.pb.gz
  [ ! -e asked/0001.pb.gz ] || fail 'one came early where an interval was asked for'
  finish
  exec 8>&-
  wait "$other"
  profile_check out/*.pb.gz
  comment_of out/0001.pb.gz | grep '^snapshot: ' >causes
  comment_of out/0002.pb.gz | grep '^snapshot: ' >>causes
  equal 'snapshot: 0001, after 5 s snapshot: 0002, after 10 s' "$(xargs <causes)"
}

test_no_interval() {
  held -q -i 0 -o out/%n.pb.gz
  finish
  equal 'exit.pb.gz peak.pb.gz' "$(cd out && echo *)"
}

test_keep() {
  held -q -i 50ms --keep 2 --delta -o out/%n.pb.gz
  wait_for 20 eval 'ls out | grep -qE "^00(0[6-9]|[1-9])"' # 0006 itself is soon removed
  finish
  profiles=$(find out -name '0*[0-9].pb.gz' | wc -l)
  deltas=$(find out -name '*-delta.pb.gz' | wc -l)
  [ "$profiles" -le 3 ] && [ "$profiles" -ge 2 ] || fail "kept $profiles profiles: $(ls out)"
  equal "$profiles" "$deltas" deltas
  [ ! -e out/0001.pb.gz ] || fail 'the oldest is still there'
}

# What a user asked for is not what the clock wrote: it stays. What the program asks for does not.
test_keep_leaves_what_was_requested() {
  held -q -i 0 --keep 2 -e page-faults/1 -o out/%n.pb.gz
  for i in 1 2 3; do
    "$heaptap" snapshot "$pid" >/dev/null
  done
  finish
  equal '0001 0002 0003' "$(cd out && ls 0*.pb.gz | sed 's/.pb.gz//' | xargs)"
  equal '0001 0002 0003' "$(cd out && ls page-faults-0*.pb.gz | sed 's/page-faults-//; s/.pb.gz//' | xargs)"
  record -q -p 1 -i 0 --keep 2 -o program/%n.pb.gz "$targets/snapshot_api" hold 10 snap '' snap '' snap '' >/dev/null
  equal '0002 0003' "$(cd program && ls 0*.pb.gz | sed 's/.pb.gz//' | xargs)"
}

# delta_check PROFILE: valid, and a delta
delta_check() {
  "$readers/check_profile" --strict "$1" || fail "$1 is not valid"
  "$readers/oracle" "$1" >/dev/null || fail "pprof refuses $1"
  go tool pprof -raw "$1" 2>/dev/null | grep -q '^Duration: ' || fail "$1 has no duration"
}

# delta_of_one_interval: what came and went, did so between two snapshots, beside a load not always; then 1
delta_of_one_interval() {
  rm -rf out
  record -q -p 1 -i 300ms --delta -o out/%n.pb.gz /usr/bin/python3 -c "
import os, time
def await_two_more():
    # The first may have begun before; the second has not.
    number = 1
    while os.path.exists('out/%04d-delta.pb.gz' % number):
        number += 1
    while not os.path.exists('out/%04d-delta.pb.gz' % (number + 1)):
        time.sleep(0.01)
    return number + 1
a = [bytearray(100000) for _ in range(100)]
before = await_two_more()
b = [bytearray(100000) for _ in range(30)]
del a, b
c = [bytearray(100000) for _ in range(7)]
after = await_two_more()
print(before, after)" >numbers
  read -r before after <numbers
  allocated=0 inuse=0 with=0
  for number in $(seq "$after"); do
    delta=out/$(printf '%04d' "$number")-delta.pb.gz
    delta_check "$delta"
    [ "$number" -gt "$before" ] || continue
    allocated=$((allocated + $(total_of "$delta" alloc_space)))
    with=$((with + ($(total_of "$delta" alloc_space) > 99999)))
    inuse=$((inuse + $(total_of "$delta" inuse_space)))
  done
  [ $with = 1 ]
}

test_delta() {
  for attempt in 1 2 3 4 5; do
    ! delta_of_one_interval || break
  done
  equal 1 "$with" 'intervals with allocations'
  [ "$allocated" -ge 3700000 ] && [ "$allocated" -le 3900000 ] || fail "allocated after the first: $allocated"
  [ "$inuse" -ge 700000 ] && [ "$inuse" -le 900000 ] || fail "of that in use: $inuse"
  at_least 10000000 "$(total_of "out/$(printf '%04d' "$before").pb.gz" inuse_space)" 'the snapshot itself'
}

# The disk is a reader that does not read: nothing queues up, nothing blocks the target, and it is counted.
test_a_slow_disk_skips() {
  held -q -i 50ms -o out/%n.pb.gz
  wait_for 20 test -e out/0002.pb.gz
  sampler=$(pgrep -P "$front" heaptap-sampler)
  writer=
  # Stopped, and not one that was ending just then (a signal to a zombie is no error).
  until [ "$writer" ] && kill -STOP "$writer" 2>/dev/null && sleep 0.05 && grep -qs '^State:.*stopped' "/proc/$writer/status"; do
    read -r writer _ <"/proc/$sampler/task/$sampler/children" || : # its line has no end
  done
  # The sampler wakes every 20 ms at most: forty intervals and more go by.
  wakings() { sed -n 's/^voluntary_ctxt_switches:[[:space:]]*//p' "/proc/$sampler/status"; }
  before=$(wakings)
  awake() { [ "$(wakings)" -ge $((before + 100)) ]; }
  wait_for 20 awake
  [ "$(pgrep -c -P "$sampler" heaptap-writer)" -le 2 ] || fail 'writers queue up'
  kill -CONT "$writer"
  last=$(find out -name '0*' | sort | tail -n 1)
  more() { [ "$(find out -name '0*' | sort | tail -n 1)" != "$last" ]; }
  wait_for 20 more
  finish
  comment_of "$(find out -name 'exit*')" >comments
  skipped=$(sed -n 's/.*before this one: \([0-9]*\) skipped.*/\1/p' comments)
  at_least 5 "${skipped:-0}" skipped
  profile_check out/exit.pb.gz
}

test_request() {
  held -q -i 0 -o out.pb.gz
  path=$("$heaptap" snapshot "$pid") || fail 'not written'
  equal "$PWD/out-0001.pb.gz" "$path"
  profile_check "$path"
  comment_of "$path" >comments
  matches '^snapshot: 0001, heaptap snapshot$' comments
  (snapshot_all_here >all) || fail 'not all are written'
  matches "^$PWD/out-0002.pb.gz\$" all
  equal "$PWD/out-0003.pb.gz" "$("$heaptap" snapshot "$front")"
  equal 1 "$(status_of "$heaptap" snapshot $$)" 'status for a process that is not profiled'
  matches "^heaptap: pid $$ is not being profiled" err
  equal 2 "$(status_of "$heaptap" snapshot)" 'status without a pid'
  finish
  equal 1 "$(status_of "$heaptap" snapshot "$pid")" 'status after the end'
}

# pair FOLDER: a session of two programs and their shell; sets front, and pids of the programs
pair() {
  "$heaptap" record -q -p 1K -i 0 -o "$1/%p-%n.pb.gz" \
    sh -c "$targets/snapshot_signal wait <input & $targets/snapshot_signal wait <input; wait" >"$1.out" 2>"$1.err" 9>&- &
  front=$!
}

two_ready() {
  [ "$(grep -c ready "$1.out")" = 2 ]
}

programs_of() {
  pgrep -P "$(child_of "$1" sh)" snapshot_signal
}

test_request_of_several_and_of_a_session() {
  mkfifo input
  pair a
  first=$front
  pair b
  exec 9>input
  wait_for 20 two_ready a
  wait_for 20 two_ready b
  read -r a1 a2 <<<"$(programs_of $first | xargs)"
  read -r b1 _ <<<"$(programs_of $front | xargs)"
  # As $(pidof snapshot_signal) gives them.
  equal "$PWD/a/$a1-0001.pb.gz $PWD/b/$b1-0001.pb.gz" "$("$heaptap" snapshot "$a1" "$b1" | xargs)"
  equal 1 "$(status_of "$heaptap" snapshot $$ "$a1")" 'status if one of two is not profiled'
  equal "$PWD/a/$a1-0002.pb.gz" "$(cat out)"
  matches "^heaptap: pid $$ is not being profiled; profiled here: [0-9]+ \(" err
  # Every process of the session, and none of the other's; by any pid of it.
  for pid in "$a2" $first; do
    "$heaptap" snapshot --session "$pid" >paths
    ! grep -v "^$PWD/a/" paths || fail 'a process of another session'
    for one in "$a1" "$a2"; do
      matches "^$PWD/a/$one-" paths
    done
  done
  equal 1 "$(status_of "$heaptap" snapshot --session $$)"
  for words in '' --all\ "$a1" --session\ "$a1"\ --all snapshot_signal -1; do
    # shellcheck disable=SC2086
    equal 2 "$(status_of "$heaptap" snapshot $words)" "status of: snapshot $words"
    equal 1 "$(wc -l <err)"
  done
  equal 2 "$(status_of "$heaptap" snapshot snapshot_signal)"
  matches "by name: heaptap snapshot \\$\(pidof snapshot_signal\)" err
  exec 9>&-
  wait $first
  wait $front
}

test_many_requests_at_once() {
  held -q -i 0 -o out/%n.pb.gz
  asking=
  for i in 1 2 3 4 5 6; do
    "$heaptap" snapshot "$pid" >path.$i &
    asking="$asking $!"
  done
  for one in $asking; do
    wait "$one" || fail 'a request failed'
  done
  for i in 1 2 3 4 5 6; do
    profile_check "$(cat path.$i)"
  done
  finish
}

test_request_of_somebody_else() {
  need_root
  held -q -i 0 -o out.pb.gz
  stage snapshot_signal
  chmod 777 .
  equal 1 "$(status_of unprivileged "$heaptap" snapshot "$pid")" 'status for another user'
  finish
  [ ! -e out-0001.pb.gz ] || fail 'another user got a snapshot'
}
