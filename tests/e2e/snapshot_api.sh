# SPDX-License-Identifier: Apache-2.0
# heaptap.h: what a program says, and what the profiles have of it.

# func PROFILE TYPE NAME: its cumulative value
func() {
  "$readers/oracle" -func "$1" | awk -F '\t' -v type="$2" -v name="$3" '$1 == "func" && $2 == type && $5 == name { sum += $4 } END { print sum + 0 }'
}

# Once more if the machine is so busy that the program has waited 2 s for an answer in vain. Who is told 0 at once, without
# such a wait before, is told wrong.
api() {
  local attempt
  for attempt in 1 2 3 4 5; do
    rm -rf api
    record -q -p 1 -i 0 -o api/heap.pb.gz "$@" >out 2>err
    grep -q 'snapshot 0' out || break
    matches '^waited in vain$' err
  done
  profile_check api/*.pb.gz
}

test_without_the_library_nothing_happens() {
  equal 0 "$(status_of "$targets/snapshot_api" hold 10 snap x stop start pool 10 drain drop)"
  equal 'snapshot 0' "$(cat out)"
}

# No link dependency: however a program is built, it builds.
test_header_alone_is_enough() {
  cat >program.c <<'C'
#include "proto/heaptap.h"
#include <stdlib.h>
int main(void)
{
	void *volatile block = malloc(1000000);
	int done = heaptap_snapshot("built");
	free(block);
	return done ? 0 : 9;
}
C
  cp program.c program.cc
  for build in "gcc -std=c99 -pedantic-errors -Wall -Wextra -Werror" "gcc -no-pie -O2" "gcc -fpic -pie -Wl,-z,now" \
    "clang -Wall -Werror" "g++ -x c++ -std=c++11 -Wall -Wextra -Werror"; do
    $build -I"$top" -o program program.c || fail "$build"
    equal 9 "$(status_of ./program)" "$build, without the library"
    equal 0 "$(status_of "$heaptap" record -q -p 1 -o "built/" ./program)" "$build, recorded"
  done
}

# The snapshot is of the moment of the call, not of the tick after.
test_snapshot_is_of_that_moment() {
  api "$targets/snapshot_api" hold 500 snap first drop hold 20 snap 'se/co nd' drop snap ''
  equal 'snapshot 1
snapshot 1
snapshot 1' "$(cat out)"
  equal 500000 "$(func api/heap-0001-first.pb.gz inuse_space take_held)" first
  equal 20000 "$(func api/heap-0002-se_co_nd.pb.gz inuse_space take_held)" second
  equal 0 "$(func api/heap-0003.pb.gz inuse_space take_held)" third
  comment_of api/heap-0001-first.pb.gz >comments
  matches '^snapshot: 0001-first, asked for by the program: first$' comments
}

test_stop_and_start() {
  api "$targets/snapshot_api" hold 100 stop hold 1000 snap stopped start hold 10
  equal 100000 "$(func api/heap-0001-stopped.pb.gz inuse_space take_held)" 'while stopped'
  equal 110000 "$(func api/heap.pb.gz alloc_space take_held)" 'in the end'
  comment_of api/heap-0001-stopped.pb.gz >comments
  matches 'sampling was paused for .* and is now' comments
  "$heaptap" report api/heap-0001-stopped.pb.gz >report
  matches '^  every allocation recorded, but not during pauses$' report
}

test_frees_are_seen_while_stopped() {
  api "$targets/snapshot_api" hold 100 stop drop hold 50 start
  equal 100000 "$(func api/heap.pb.gz alloc_space take_held)" allocated
  equal 0 "$(func api/heap.pb.gz inuse_space take_held)" 'in use'
}

test_paused_from_the_start() {
  api --paused "$targets/snapshot_api" hold 100 start hold 7 stop hold 100
  equal 7000 "$(func api/heap.pb.gz alloc_space take_held)"
}

test_forked_children_and_executed_programs_are_paused_alike() {
  record -q --paused -p 1 -o paused/ /usr/bin/python3 -c "
import os
if os.fork() == 0:
    held = [bytearray(1000) for _ in range(1000)]
    os._exit(0)
os.wait()
os.execv('$targets/snapshot_api', ['x', 'hold', '100'])"
  profile_check paused/*.pb.gz
  for profile in paused/*.exit.pb.gz; do
    equal 0 "$(total_of "$profile" alloc_space)" "$profile"
  done
}

test_pools() {
  api "$targets/snapshot_api" pool 200 snap full drain snap drained
  equal 20000 "$(func api/heap-0001-full.pb.gz inuse_space take_pooled)" 'in use, the pool itself not counted'
  equal 0 "$(func api/heap-0002-drained.pb.gz inuse_space take_pooled)"
  equal 1020000 "$(func api/heap.pb.gz alloc_space take_pooled)" 'allocated, the pool itself too'
}

# Nobody is waited for in vain, but once: the sampler is stopped. When it goes on, so do answers.
test_a_sampler_that_does_not_answer() {
  mkfifo go
  "$heaptap" record -q -p 1 -o gone.pb.gz sh -c "
    exec <go
    read x
    exec $targets/snapshot_api hold 10 snap a snap b snap c line again" >out 2>err &
  front=$!
  wait_for 20 pgrep -P "$front" heaptap-sampler >/dev/null
  sampler=$(pgrep -P "$front" heaptap-sampler)
  exec 9>go
  sleep 0.3 # for the shell's own claim; nothing depends on it
  kill -STOP "$sampler"
  echo >&9
  wait_for 20 grep -q 'snapshot' out
  lines() { [ "$(wc -l <out)" = 3 ]; }
  wait_for 20 lines
  equal 'snapshot 0' "$(sort -u out)"
  equal 1 "$(grep -c "^waited in vain\$" err)" "waits of three"
  kill -CONT "$sampler"
  echo >&9
  wait "$front"
  equal 'snapshot 1' "$(sed -n 4p out)" 'some time after the sampler goes on'
}
