/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Calls its functions as CPython does with -X perf: each through a copy of a few instructions in an arena,
 * which has neither unwind rows nor, on x86-64, a frame pointer. The perf map names the copies. Prints its
 * pid, and half way waits for a byte.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum { TIMES = 1000, ARENA = 64 << 10 };

#if defined(__x86_64__)
/* sub $8, %rsp; call *%rcx; add $8, %rsp; ret */
static const uint8_t code[] = {0x48, 0x83, 0xec, 8, 0xff, 0xd1, 0x48, 0x83, 0xc4, 8, 0xc3};
#else
/* stp x29, x30, [sp, -16]!; mov x29, sp; blr x3; ldp x29, x30, [sp], 16; ret */
static const uint32_t code[] = {0xa9bf7bfd, 0x910003fd, 0xd63f0060, 0xa8c17bfd, 0xd65f03c0};
#endif

typedef void function_fn(void *, void *, int);
typedef void trampoline_fn(void *, void *, int, function_fn *);

static void *volatile kept[TIMES];
static volatile int count;
static char *arena;

#define NAMED __attribute__((noinline, noclone))

static trampoline_fn *copy(size_t number)
{
	char *at = arena + number * sizeof(code);
	trampoline_fn *function;

	memcpy(&function, &at, sizeof(function));
	return function;
}

NAMED void leaf(void)
{
	kept[count] = malloc(1000);
	if (!kept[count])
		abort();
	count++;
}

NAMED void inner(void *a, void *b, int n)
{
	leaf();
	count += n;
}

NAMED void outer(void *a, void *b, int n)
{
	copy(7)(a, b, n, inner);
	count += n;
}

int main(void)
{
	char path[64];

	arena = mmap(NULL, ARENA, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (arena == MAP_FAILED)
		abort();
	for (size_t at = 0; at + sizeof(code) <= ARENA; at += sizeof(code))
		memcpy(arena + at, code, sizeof(code));
	if (mprotect(arena, ARENA, PROT_READ | PROT_EXEC))
		abort();
	__builtin___clear_cache(arena, arena + ARENA);
	snprintf(path, sizeof(path), "/tmp/perf-%d.map", (int)getpid());
	unlink(path); /* of an earlier process with this number */
	FILE *map = fopen(path, "w");
	if (!map ||
	    fprintf(map, "%lx %zx named_inner\n%lx %zx named_outer\n",
	        (unsigned long)(arena + 7 * sizeof(code)), sizeof(code),
	        (unsigned long)(arena + 3 * sizeof(code)), sizeof(code)) < 0 ||
	    fclose(map))
		abort();
	printf("%d\n", (int)getpid());
	fflush(stdout);
	char byte;
	for (int i = 0; i < TIMES; i++) {
		if (i == TIMES / 2)
			(void)!read(0, &byte, 1);
		copy(3)(NULL, NULL, 0, outer);
	}
	/* Until the standard input ends. */
	while (read(0, &byte, 1) > 0)
		;
	return 0;
}
