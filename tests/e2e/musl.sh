# SPDX-License-Identifier: Apache-2.0
# Programs that are linked with musl. One library for every libc: musl's loader takes it too.

command -v musl-gcc >/dev/null || skip 'musl-gcc is not installed'

backends="breakpoint copy"
[ "$(id -u)" != 0 ] || backends="uprobe $backends"

# build NAME FILE: with musl, as the test programs are built else
build() {
  musl-gcc -std=gnu11 -I "$HEAPTAP_TOP" -O2 -g -fno-builtin -w -pthread -o "$1" "$2"
}

# Threads, a forked child, functions of the family, and heaptap.h. In a child, too, the kernel takes the stacks.
test_threads_and_forks() {
  cat >program.c <<'C'
#define _GNU_SOURCE
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
#include "proto/heaptap.h"
#include "tests/targets/own_region.h"
static _Atomic long objects, bytes, inuse;
__attribute__((noinline)) void *take(size_t size)
{
	void *block = malloc(size);
	memset(block, 1, size);
	objects++;
	bytes += size;
	inuse += size;
	return block;
}
static void churn(int count, size_t size)
{
	for (int i = 0; i < count; i++) {
		take(size);
		free(take(size));
		inuse -= size;
	}
}
static void *thread(void *argument) { churn(50, 300); return NULL; }
static void report(void)
{
	char text[100];
	heaptap_snapshot(NULL); /* so that the sampler has read the maps before the process is gone */
	int length = snprintf(text, 100, "truth %d %ld %ld %ld\n", getpid(), objects, bytes, inuse);
	if (write(1, text, length) != length) _exit(9);
}
int main(int argc, char *argv[])
{
	pthread_t threads[4];
	void *block;
	if (strcmp(argv[1], "copy") != 0 && await_event() != 0) return 10;
	churn(100, 1000);
	for (int i = 0; i < 4; i++) pthread_create(&threads[i], NULL, thread, NULL);
	for (int i = 0; i < 4; i++) pthread_join(threads[i], NULL);
	if (posix_memalign(&block, 64, 1000) || (size_t)block % 64) return 1;
	free(block);
	block = aligned_alloc(128, 1280);
	if ((size_t)block % 128) return 2;
	free(block);
	free(realloc(calloc(10, 10), 1000));
	errno = 0;
	if (malloc((size_t)-1 - 4096) || errno != ENOMEM) return 3;
	report();
	pid_t child = fork();
	if (child == 0) { objects = bytes = 0; churn(20, 500); report(); _exit(0); }
	int status;
	waitpid(child, &status, 0);
	return status != 0;
}
C
  build program program.c
  for backend in $backends; do
    rm -f heaptap.*
    record -q -b $backend -p 1 ./program $backend >truth || fail "$backend: status $?"
    equal 2 "$(wc -l <truth)" 'processes'
    while read -r _ pid objects bytes inuse; do
      profile=$(only heaptap.program."$pid".exit.pb.gz)
      profile_check "$profile"
      reached_exactly "$profile" take "alloc_objects $objects" "alloc_space $bytes" "inuse_space $inuse"
      comment_of "$profile" >comments
      way="by $backend"
      [ $backend != copy ] || way='copied by the hook'
      at_least 1 "$(sed -n "s/^samples: .*$way \([0-9]*\).*/\1/p" comments)" "$backend: stacks of pid $pid that came so"
    done <truth
  done
}

# The program that knows its own truth: every function of it, with threads too.
test_truth() {
  build truth "$top/tests/targets/truth.c"
  for how in $backends auto; do
    for work in '30 2000' '10 2000 4'; do
      for attempt in 1 2 3 4 5; do
        # shellcheck disable=SC2086
        record -q -b $how -p 1 -o exact.pb.gz ./truth truth.tsv $work
        comment_of exact.pb.gz | grep -qE '^samples: [0-9]+ taken, 0 lost stacks(,|$)' && break
      done
      profile_check exact.pb.gz
      "$readers/oracle" -func exact.pb.gz >functions
      python3 "$top/tests/compare_truth.py" truth.tsv 1 <functions || fail "$how, $work: the profile does not agree with the truth"
    done
  done
}

test_doctor_and_record_say_it() {
  build leaky "$top/tests/targets/leaky.c"
  "$heaptap" doctor ./leaky >out || :
  matches '^note +./leaky uses musl as its C library: seen as with glibc, but ' out
  matches '^ok +./leaky is dynamically linked: its allocations are seen$' out
  record -v -o x.pb.gz ./leaky 300 64 2>err
  matches '^heaptap: ./leaky uses musl as its C library$' err
  record -o x.pb.gz ./leaky 300 64 2>err
  ! grep musl err || fail "$(cat err)"
}

# It carries the library, as programs of an image with musl do.
test_daemon() {
  . "$top/tests/daemon_lib.sh"
  stage daemon_steps daemon_offer
  build bin/musl_steps "$top/tests/targets/daemon_steps.c"
  start_daemon
  LD_PRELOAD=$PWD/bin/libheaptap.so "$PWD/bin/musl_steps" on hold 100 1000 fork churn 10 hold 50 1000 touch held await go &
  target=$!
  wait_for 20 test -e held
  touch go
  wait $target
  both() { [ "$(ls store/steps/*/*.exit.pb.gz 2>/dev/null | wc -l)" = 2 ]; }
  wait_for 20 both
  for profile in store/steps/*/*.exit.pb.gz; do
    profile_check "$profile"
    case $profile in
      *."$target".exit*) reached_exactly "$profile" hold 'inuse_objects 100' 'inuse_space 100000' ;;
      *) reached_exactly "$profile" hold 'inuse_objects 150' 'inuse_space 150000'
        reached_exactly "$profile" churn 'alloc_objects 10' 'inuse_space 0' ;;
    esac
  done
  stop_daemon
}

# musl puts thread-local storage that is not small into a mapping of its own, beside a stack that the program gives. What lies
# between the two is none of the stack, and need not be mapped. (Exit status 7: the kernel has placed them otherwise.)
test_given_stacks() {
  cat >program.c <<'C'
#define _GNU_SOURCE
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include "proto/heaptap.h"
enum { PAGE = 4096, STACK = 64 * PAGE, GAP = 16 * PAGE, ALL = 128 * PAGE };
static __thread volatile char large[PAGE];
static char *stack;
static int misplaced;
__attribute__((noinline)) void *take(size_t size)
{
	void *volatile block = malloc(size);
	return block;
}
__attribute__((noinline)) void *run(void *argument)
{
	char *self = (char *)pthread_self(), *end = stack + STACK;
	large[0] = 1;
	misplaced = self < end || self >= end + GAP || msync(end, PAGE, MS_ASYNC) == 0 || errno != ENOMEM;
	for (int i = 0; i < 11; i++) take(100);
	return NULL;
}
int main(void)
{
	pthread_attr_t attr;
	pthread_t thread;
	char *all = mmap(NULL, ALL, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	/* The kernel takes the highest gap with room: no other is to be above this one. */
	char *other = all;
	for (int i = 0; i < 100000 && other >= all; i++)
		other = mmap(NULL, 2 * PAGE, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	stack = all;
	munmap(all + STACK, GAP);
	pthread_attr_init(&attr);
	if (pthread_attr_setstack(&attr, stack, STACK) || pthread_create(&thread, &attr, run, NULL)) return 1;
	pthread_join(thread, NULL);
	heaptap_snapshot(NULL); /* so that the sampler has read the maps before the process is gone */
	return misplaced ? 7 : 0;
}
C
  build program program.c
  for _ in 1 2 3 4 5 6 7 8 9 10; do
    status=0
    record -q -b copy -p 1 -o given.pb.gz ./program || status=$?
    [ $status = 7 ] || break
  done
  [ $status != 7 ] || skip 'the kernel places the mappings otherwise'
  equal 0 $status 'status'
  profile_check given.pb.gz
  reached_exactly given.pb.gz run 'alloc_objects 11' 'alloc_space 1100'
  comment_of given.pb.gz | grep -qE '^samples: [0-9]+ taken, 0 lost stacks(,|$)' || fail "$(comment_of given.pb.gz)"
}
