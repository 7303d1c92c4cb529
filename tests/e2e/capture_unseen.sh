# SPDX-License-Identifier: Apache-2.0
# What the hook cannot see is said in the profile, not passed over; and other libcs than glibc.

library_of() {
  ldconfig -p | awk -v name="$1" '$1 == name { print $NF; exit }'
}

test_program_with_its_own_malloc_is_told() {
  cat >own.c <<'C'
#include <stddef.h>
static _Alignas(16) char pool[1 << 24];
static size_t used;
void *malloc(size_t size) { size = (size + 15) & ~15ul; used += size; return pool + used - size; }
void free(void *block) { }
void *calloc(size_t count, size_t size) { return malloc(count * size); }
void *realloc(void *block, size_t size) { return malloc(size); }
int main(void) { for (int i = 0; i < 1000; i++) free(malloc(100)); return 0; }
C
  gcc -O1 -fno-builtin -w -o own own.c
  record -b copy -p 1 -o x.pb.gz ./own 2>err
  profile_check x.pb.gz
  comment_of x.pb.gz | grep -q '^not seen: the program has a malloc of its own' || fail 'no comment'
  matches 'not seen: the program has a malloc' err
}

# One file for every libc: musl's loader takes it too.
test_musl() {
  command -v musl-gcc >/dev/null || skip 'musl-gcc is not installed'
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
int main(void)
{
	pthread_t threads[4];
	void *block;
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
  musl-gcc -I "$HEAPTAP_TOP" -O2 -g -fno-builtin -w -o program program.c
  for backend in breakpoint copy; do
    rm -f heaptap.*
    record -q -b $backend -p 1 ./program >truth || fail "$backend: status $?"
    while read -r _ pid objects bytes inuse; do
      profile=$(only heaptap.program."$pid".exit.pb.gz)
      profile_check "$profile"
      reached_exactly "$profile" take "alloc_objects $objects" "alloc_space $bytes" "inuse_space $inuse"
    done <truth
  done
}

# 32-bit programs run as they would, and are named. (A dynamic one's loader says itself that it does not take the library.)
test_32_bit() {
  [ "$(uname -m)" = x86_64 ] || skip 'x86-64 only'
  printf '.globl _start\n_start: mov $1, %%eax\nmov $42, %%ebx\nint $0x80\n' >program.s
  gcc -m32 -nostdlib -static -o program program.s 2>/dev/null || skip 'gcc makes no 32-bit programs'
  ./program && status=0 || status=$?
  [ $status = 42 ] || skip 'this kernel runs no 32-bit programs'
  equal 1 "$(status_of "$heaptap" doctor ./program)"
  matches '^bad +./program is built for another architecture: the library cannot be loaded, so nothing of it is seen$' out
  equal 42 "$(status_of record -o x.pb.gz ./program)"
  matches 'program is built for another architecture' err
  equal 42 "$(status_of record -p 1 -o profiles/ sh -c 'exec ./program')"
  matches 'program, which is not profiled: it is built for another architecture|executed .*program, which is not profiled' err
}
