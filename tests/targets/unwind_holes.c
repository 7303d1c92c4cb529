/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Allocates below pages of the stack that are not present.
 *
 *   unwind_holes threads      below arrays of several sizes that are not written, each in a thread of its own
 *   unwind_holes main BYTES   the same in the main thread, of one size
 *   unwind_holes given        below pages that the program has given back to the kernel
 *   unwind_holes kept         below callers whose pages the kernel has, as of a stack that was swapped out
 *   unwind_holes fiber BYTES  on a stack that only the program knows
 *   unwind_holes work BYTES   allocates nothing, but works below such an array in a thread
 *
 * All is done in hole_leaf, which hole_caller calls in the end, with rests in which a sampler can follow.
 */
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <ucontext.h>
#include <unistd.h>

#define NOINLINE __attribute__((noinline, noclone))

enum {
	TIMES = 20000,
	REST = 500,
	BLOCK_BYTES = 1000,
	WORK = 20000,
	PAGE_BYTES = 4096,
	STACK_BYTES = 1 << 20
};

static volatile int sink;
static void *volatile block;
static bool works;

NOINLINE static void hole_leaf(void)
{
	for (int i = 0; works && i < WORK; i++)
		sink = sink + i;
	if (works)
		return;
	block = malloc(BLOCK_BYTES);
	free(block);
}

/* A function for each size: nothing must touch an array but its first byte, at the lower end. */
#define HOLE(bytes)                             \
	NOINLINE static void hole_##bytes(void) \
	{                                       \
		volatile char array[bytes];     \
		array[0] = 1;                   \
		hole_leaf();                    \
		sink = sink + array[0];         \
	}
HOLE(3000)
HOLE(4096)
HOLE(8192)
HOLE(16384)
HOLE(24576)
HOLE(40000)
HOLE(60000)

static const struct {
	int bytes;
	void (*function)(void);
} holes[] = {{3000, hole_3000}, {4096, hole_4096}, {8192, hole_8192}, {16384, hole_16384},
    {24576, hole_24576}, {40000, hole_40000}, {60000, hole_60000}};

enum { HOLES = sizeof(holes) / sizeof(holes[0]) };

static uintptr_t stack_end; /* of the thread */

/* The pages from the first that begins above `start`. */
static void give(const volatile char *start, uintptr_t end)
{
	const uintptr_t first = ((uintptr_t)start + PAGE_BYTES - 1) / PAGE_BYTES * PAGE_BYTES;

	if (madvise((void *)first, end / PAGE_BYTES * PAGE_BYTES - first, MADV_DONTNEED) != 0)
		exit(1);
}

NOINLINE static void hole_given(void)
{
	volatile char array[20000];

	memset((void *)array, 1, sizeof(array));
	give(array, (uintptr_t)(array + sizeof(array)));
	hole_leaf();
	sink = sink + array[0];
}

/* Of memory that is shared the kernel keeps what is in it. */
NOINLINE static void hole_kept(void)
{
	volatile char array[8192];

	array[0] = 1;
	give(array, stack_end);
	hole_leaf();
	sink = sink + array[0];
}

NOINLINE static void hole_caller(void (*function)(void))
{
	for (int i = 0; i < TIMES; i++) {
		function();
		if (i % REST == 0)
			usleep(1000);
	}
	sink = sink + 1;
}

static void *thread(void *argument)
{
	void (*const *function)(void) = argument;
	hole_caller(*function);
	return NULL;
}

/* On a stack that nobody has used before. */
static void run(void (*function)(void), int sharing)
{
	pthread_t id;
	pthread_attr_t attributes;
	void *stack = mmap(NULL, STACK_BYTES, PROT_READ | PROT_WRITE, sharing | MAP_ANONYMOUS, -1, 0);

	stack_end = (uintptr_t)stack + STACK_BYTES;
	pthread_attr_init(&attributes);
	pthread_attr_setstack(&attributes, stack, STACK_BYTES);
	if (stack == MAP_FAILED || pthread_create(&id, &attributes, thread, &function) != 0)
		exit(1);
	pthread_join(id, NULL);
}

static void (*in_fiber)(void);

static void fiber(void)
{
	hole_caller(in_fiber);
}

static void run_fiber(void (*function)(void))
{
	static ucontext_t own, other;

	in_fiber = function;
	getcontext(&other);
	other.uc_stack.ss_sp =
	    mmap(NULL, STACK_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	other.uc_stack.ss_size = STACK_BYTES;
	other.uc_link = &own;
	makecontext(&other, fiber, 0);
	swapcontext(&own, &other);
}

int main(int argc, char **argv)
{
	const char *how = argc > 1 ? argv[1] : "";
	void (*function)(void) = NULL;

	for (int i = 0; i < HOLES; i++)
		if (argc > 2 && holes[i].bytes == atoi(argv[2]))
			function = holes[i].function;
	works = strcmp(how, "work") == 0;
	if (strcmp(how, "threads") == 0)
		for (int i = 0; i < HOLES; i++)
			run(holes[i].function, MAP_PRIVATE);
	else if (strcmp(how, "given") == 0)
		run(hole_given, MAP_PRIVATE);
	else if (strcmp(how, "kept") == 0)
		run(hole_kept, MAP_SHARED);
	else if (!function)
		return 2;
	else if (strcmp(how, "main") == 0)
		hole_caller(function);
	else if (strcmp(how, "fiber") == 0)
		run_fiber(function);
	else
		run(function, MAP_PRIVATE);
	return 0;
}
