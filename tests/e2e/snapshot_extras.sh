# SPDX-License-Identifier: Apache-2.0
# Labels, lifetimes and the time line.

# longer_and_longer TEST: with threads that live for so many seconds: as soon as the sampler gets its turn while they live,
# they must have their names. It writes what failed to ./failed.
longer_and_longer() {
  local test=$1 seconds
  for seconds in 0.02 0.2 2 $(seconds 2); do
    rm -rf out failed
    "$test" "$seconds"
    [ -e failed ] || return 0
  done
  fail "with threads of $seconds s: $(cat failed)"
}

test_thread_labels() { longer_and_longer thread_labels; }

thread_labels() {
  record -q -p 1 --labels thread -o out/%n.pb.gz /usr/bin/python3 -c "
import threading, time
def worker(n):
    open('/proc/self/task/%d/comm' % threading.get_native_id(), 'w').write('worker-%d' % n)
    held.append([bytearray(100000) for _ in range(10 * n)])
    time.sleep($1)
held = []
threads = [threading.Thread(target=worker, args=(n,)) for n in (1, 2)]
[t.start() for t in threads]
[t.join() for t in threads]"
  profile_check out/*.pb.gz
  go tool pprof -tags -sample_index=inuse_space out/peak.pb.gz >tags 2>/dev/null
  matches 'thread_id: ' tags
  go tool pprof -top -tagfocus=thread_name=worker-2 -sample_index=inuse_space out/peak.pb.gz >top 2>/dev/null
  grep -qE '^Showing nodes accounting for (1\.9|2)[0-9.]*MB' top || cp top failed
}

# Threads that live for a few milliseconds, by either way of a name: the kernel tells, or the sampler reads it.
test_short_threads_have_names() {
  for backend in auto copy; do
    longer_and_longer short_threads
  done
}

short_threads() {
  record -q -b $backend -p 1 -i 0 --labels thread -o out/%n.pb.gz /usr/bin/python3 -c "
import threading, time
def worker(n):
    open('/proc/self/task/%d/comm' % threading.get_native_id(), 'w').write('brief-%d' % n)
    held.append(bytearray(300000))
    time.sleep($1)
held = []
for n in range(20):
    thread = threading.Thread(target=worker, args=(n,))
    thread.start()
    thread.join()"
  profile_check out/*.pb.gz
  go tool pprof -tags -sample_index=inuse_space out/exit.pb.gz >tags 2>/dev/null
  names=$(grep -c ' brief-[0-9]*$' tags || :)
  [ "$names" -ge 18 ] || echo "$names of 20 names by $backend" >failed
}

test_size_and_age_labels() {
  record -q -p 1 -i 0 --labels age,size -o out/%n.pb.gz "$targets/snapshot_api" hold 100 snap a hold 50
  profile_check out/*.pb.gz
  go tool pprof -tags -sample_index=inuse_objects out/exit.pb.gz >tags 2>/dev/null
  matches ' size: ' tags
  matches ' age: ' tags
  go tool pprof -top -tagfocus=size=1kb:1kb -focus=take_held -sample_index=inuse_objects out/exit.pb.gz >top 2>/dev/null
  matches '150 .*take_held' top
  equal "$(total_of out/exit.pb.gz alloc_objects)" "$(comment_of out/exit.pb.gz | sed -n 's/^samples: \([0-9]*\) taken.*/\1/p')" 'alloc_objects'
}

test_labels_are_checked() {
  equal 2 "$(status_of "$heaptap" record --labels thread,colour true)"
  matches "'thread,colour' is not possible" err
}

test_no_labels_unless_asked_for() {
  record -q -p 1 -o plain.pb.gz "$targets/snapshot_api" hold 100
  go tool pprof -tags plain.pb.gz >tags 2>/dev/null
  ! grep -qE '(thread|age|size)' tags || fail 'labels that nobody asked for'
}

test_lifetimes() {
  record -q -p 1 -i 0 --lifetimes --temporary 200ms -o out/%n.pb.gz /usr/bin/python3 -c "
import time
for i in range(100):
    short = bytearray(300000)
    del short
long = [bytearray(300000) for _ in range(10)]
time.sleep(0.5)
del long
alive = [bytearray(300000) for _ in range(5)]"
  profile_check out/exit.pb.gz
  python3 - out/lifetimes.jsonl <<'P' || fail 'lifetimes'
import json, sys
head, *rows = [json.loads(line) for line in open(sys.argv[1])]
classes = head["classes"]
assert head["temporary_ns"] == 200000000, head
def count(rows, key, low, high):
    return sum(sum(r[key][low:high]) for r in rows)
rows = [r for r in rows if r["freed_bytes"] > 900000 or sum(r["live"][:]) == 5]
freed = [r for r in rows if r["freed_bytes"] > 900000]
late = classes.index("100ms-1s")
print(json.dumps(rows)[:2000])
# Of 100 short ones, some may have been interrupted for longer than a long one lives.
assert count(freed, "freed", 0, late) >= 80, "short ones"
assert count(freed, "freed", late, None) >= 10, "long ones"
assert sum(r["temporary"] for r in freed) >= 80, "temporary"
for r in rows:
    assert len(r["freed"]) == len(r["live"]) == len(classes) and r["stack"], r
P
  comment_of out/exit.pb.gz >comments
  matches '^lifetimes: of [0-9]+ freed objects .* were temporary \(freed within 200 ms' comments
}

# What one thread allocates and another frees.
test_frees_by_another_thread() {
  cat >other.c <<'C'
#include <pthread.h>
#include <stdlib.h>
static void *block[1000];
static void *let_go(void *unused)
{
	for (int i = 0; i < 1000; i++)
		free(block[i]);
	return unused;
}
int main(void)
{
	pthread_t thread;
	for (int i = 0; i < 1000; i++)
		block[i] = malloc(100);
	pthread_create(&thread, NULL, let_go, NULL);
	pthread_join(thread, NULL);
}
C
  gcc -O1 -g -pthread -o other other.c
  record -q -p 1 -i 0 --lifetimes -o out/%n.pb.gz ./other
  equal 1000 "$(sed -n 's/.*"main".*"freed_samples":1000,.*"other_thread":\([0-9]*\).*/\1/p' out/lifetimes.jsonl)"
}

test_timeline() {
  record -q -p 1 -i 300ms --timeline -o out/%n.pb.gz /usr/bin/python3 -c "
import time
def lines():
    try:
        return open('out/timeline.jsonl').read().count(chr(10))
    except OSError:
        return 0
held = []
for i in range(5):
    held.append([bytearray(100000) for _ in range(20)])
    # Two more: between them lies one that began after this.
    seen, deadline = lines(), time.time() + $(seconds 10)
    while lines() < seen + 2 and time.time() < deadline:
        time.sleep(0.01)"
  profile_check out/*.pb.gz
  python3 - out/timeline.jsonl <<'P' || fail 'time line'
import json, sys
points = [json.loads(line) for line in open(sys.argv[1])]
assert len(points) >= 5, len(points)
assert all(a["time"] <= b["time"] for a, b in zip(points, points[1:]))
largest = max(points, key=lambda p: p["inuse_bytes"])
assert largest["inuse_bytes"] >= 10e6, largest
seen = [p for p in points if "rss_bytes" in p]
assert seen and all(abs(p["rss_bytes"] - p["inuse_bytes"] - p["rss_minus_inuse_bytes"]) <= 1 for p in seen)
assert max(p["rss_bytes"] for p in seen) > 10e6 and seen[0]["threads"] >= 1
assert max(p["alloc_bytes_per_second"] for p in points) > 1e6
P
}

test_nothing_extra_unless_asked_for() {
  record -q -p 1 -i 0 -o out/%n.pb.gz "$targets/snapshot_api" hold 100
  equal 'exit.pb.gz peak.pb.gz' "$(cd out && echo *)"
}
