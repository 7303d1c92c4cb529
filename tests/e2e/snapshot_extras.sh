# SPDX-License-Identifier: Apache-2.0
# Labels and lifetimes; what only options add to the files.

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
  cat >lifetimes.c <<'C'
#include <stdlib.h>
#include <unistd.h>
static void *kept[10];
__attribute__((noinline)) static void use_for_moments(void)
{
	for (int i = 0; i < 100; i++)
		free(malloc(300));
}
__attribute__((noinline)) static void keep_for_long(void)
{
	for (int i = 0; i < 10; i++)
		kept[i] = malloc(300);
}
int main(void)
{
	use_for_moments();
	keep_for_long();
	usleep(500000);
	for (int i = 0; i < 10; i++)
		free(kept[i]);
}
C
  gcc -O1 -g -fno-builtin-malloc -fno-builtin-free -o lifetimes lifetimes.c
  record -q -p 1 -i 0 --labels lifetime --temporary 200ms -o out/%n.pb.gz ./lifetimes
  profile_check out/exit.pb.gz
  comment_of out/exit.pb.gz >comments
  matches '^lifetimes: of [0-9]+ freed objects .* were temporary \(freed within 200 ms' comments
  go tool pprof -top -tagfocus=lifetime=temporary -sample_index=alloc_objects out/exit.pb.gz >top 2>/dev/null
  # Some of the short ones may have been interrupted for longer than a long one lives.
  temporary=$(awk '$NF == "use_for_moments" || $(NF - 1) == "use_for_moments" { print $1 }' top)
  [ "${temporary:-0}" -ge 80 ] || { cat top >&2; fail "temporary: '$temporary' of 100"; }
  ! grep keep_for_long top || fail 'blocks of 500 ms are called temporary'
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
  record -q -p 1 -i 0 -o out/%n.pb.gz ./other
  comment_of out/exit.pb.gz >comments
  python3 - comments <<'P' || { cat comments >&2; fail 'freed by another thread'; }
import re, sys
freed, share = re.search(r"lifetimes: of (\d+) freed .*, ([0-9.]+)% were freed by another thread", open(sys.argv[1]).read()).groups()
assert abs(float(share) / 100 * int(freed) - 1000) <= int(freed) / 1000, (freed, share)
P
}

# Options that heaptap had say what to use now.
test_options_that_are_gone() {
  equal 2 "$(status_of "$heaptap" record --timeline true)"
  matches '^heaptap: --timeline is gone: use heaptap report --timeline' err
  equal 2 "$(status_of "$heaptap" attach --lifetimes 1)"
  matches '^heaptap: --lifetimes is gone: use --labels lifetime' err
}

test_nothing_extra_unless_asked_for() {
  record -q -p 1 -i 0 -o out/%n.pb.gz "$targets/snapshot_api" hold 100
  equal 'exit.pb.gz peak.pb.gz' "$(cd out && echo *)"
}
