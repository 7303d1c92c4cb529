# SPDX-License-Identifier: Apache-2.0
# Allocators whose calls fail, or are left by a jump: what is allocated afterwards is sampled as anything is.

# build: ./program, with an allocator in a library of its own that fails each second call, or raises SIGUSR2 in each, when
# it is told to. Its memory is never used again, and holds nothing but zeroes.
build() {
  cat >bump.c <<'C'
#include <errno.h>
#include <signal.h>
#include <stdatomic.h>
#include <stddef.h>
int bump_fails, bump_raises;
static _Alignas(4096) char pool[512 << 20];
static void *bump(size_t alignment, size_t size)
{
	static _Atomic size_t used, calls;
	if (bump_raises)
		raise(SIGUSR2);
	if (bump_fails && atomic_fetch_add(&calls, 1) % 2 == 0) {
		errno = ENOMEM;
		return NULL;
	}
	size_t at = atomic_fetch_add(&used, (size + alignment + 15) & ~15ul);
	return pool + ((at + alignment - 1) & ~(alignment - 1));
}
void *malloc(size_t size) { return bump(16, size); }
void *memalign(size_t alignment, size_t size) { return bump(alignment, size); }
void *calloc(size_t count, size_t size) { return bump(16, count * size); }
void *realloc(void *block, size_t size) { return bump(16, size); }
void free(void *block) { }
C
  cat >program.c <<'C'
#include <malloc.h>
#include <setjmp.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
extern int bump_fails, bump_raises;
static void *volatile block;
static sigjmp_buf back;
__attribute__((noinline)) static void take(size_t size)
{
	do
		block = malloc(size);
	while (!block);
}
static void on_signal(int number) { siglongjmp(back, 1); }
static void leave(const char *function)
{
	signal(SIGUSR2, on_signal);
	if (sigsetjmp(back, 1) == 0) {
		bump_raises = 1;
		block = !strcmp(function, "malloc") ? malloc(100) : !strcmp(function, "calloc") ? calloc(10, 10)
			: !strcmp(function, "realloc") ? realloc(NULL, 100) : memalign(64, 100);
	}
	bump_raises = 0;
}
/* program BLOCKS BYTES fails|FUNCTION-THAT-IS-LEFT */
int main(int argc, char **argv)
{
	int blocks = atoi(argv[1]), bytes = atoi(argv[2]);
	if (!strcmp(argv[3], "fails"))
		bump_fails = 1;
	else
		leave(argv[3]);
	for (int i = 0; i < blocks; i++)
		take(bytes);
	return 0;
}
C
  gcc -O1 -fno-builtin -shared -fPIC -w -o libbump.so bump.c
  gcc -O1 -g -fno-builtin -w -o program program.c -L. -lbump "-Wl,-rpath,$PWD"
}

# Each block of 4096 bytes is had at the second attempt. A failed call that was not undone would leave the next one a
# sample more often than its weight says: twice as many objects. A chance of one in ten million: 5.3 standard errors.
test_failed_calls_are_no_bias() {
  build
  record -q -b copy -p 64K -o failed.pb.gz ./program 40000 4096 fails
  profile_check failed.pb.gz
  total_of failed.pb.gz alloc_objects >objects
  awk '{ n = 40000; p = 1 - exp(-4096 / 65536); off = ($1 - n) / sqrt(n * (1 - p) / p)
    printf "%d objects of %d, %.1f standard errors\n", $1, n, off; exit !(off < 5.3 && off > -5.3) }' objects ||
    fail 'biased'
}

# A signal handler jumps out of the allocator. The first sample after that may be taken for one of the call that was left.
test_sampling_goes_on_after_a_jump_out_of_the_allocator() {
  build
  for function in malloc calloc realloc memalign; do
    record_whole $function.pb.gz -p 1 ./program 1000 100 $function
    profile_check $function.pb.gz
    "$readers/oracle" -reach '^take$' $function.pb.gz | awk -F '\t' '$1 == "reach" && $2 ~ /^alloc_objects/ { print $3 }' >objects
    at_least 999 "$(cat objects)" "objects after $function was left"
    at_most 1000 "$(cat objects)" "objects after $function was left"
  done
}
