/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Writes down all that a program allocates and frees, for bench/growth_replay.c: a library to preload, with
 * GROWTH_LOG=FILE. It is no part of heaptap, waits for locks, and makes the program several times slower.
 *
 * FILE has events, FILE.stacks the stacks (growth_log.h).
 */
#include <dlfcn.h>
#include <fcntl.h>
#include <malloc.h>
#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#include <unwind.h>

#include "bench/growth_log.h"

#define PUBLIC __attribute__((visibility("default")))

enum { OWN_FRAMES = 2, STACKS_MOST = 1 << 16, FUNCTIONS_MOST = 1 << 16, EVENTS = 1 << 14 };

static void *(*real_malloc)(size_t);
static void *(*real_calloc)(size_t, size_t);
static void *(*real_realloc)(void *, size_t);
static void *(*real_memalign)(size_t, size_t);
static void (*real_free)(void *);

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static __thread int inside __attribute__((tls_model("initial-exec")));
static int fd = -1, stacks_fd = -1;
static struct growth_log_event events[EVENTS];
static size_t event_count;
static struct growth_log_stack stacks[STACKS_MOST];
static uint32_t stack_index[STACKS_MOST * 2]; /* number + 1 */
static uint32_t stack_count;
static struct {
	uint64_t pc, start;
} functions[FUNCTIONS_MOST];

/* dlsym() allocates before it can say where malloc is. */
static char early[1 << 16] __attribute__((aligned(16)));
static size_t early_bytes;

static void *early_alloc(size_t bytes)
{
	char *block = early + early_bytes;

	early_bytes += (bytes + 15) & ~(size_t)15;
	return early_bytes <= sizeof(early) ? block : NULL;
}

static void load(void)
{
	static int loading;

	if (real_free || loading)
		return;
	loading = 1;
	real_malloc = (void *(*)(size_t))dlsym(RTLD_NEXT, "malloc");
	real_calloc = (void *(*)(size_t, size_t))dlsym(RTLD_NEXT, "calloc");
	real_realloc = (void *(*)(void *, size_t))dlsym(RTLD_NEXT, "realloc");
	real_memalign = (void *(*)(size_t, size_t))dlsym(RTLD_NEXT, "memalign");
	real_free = (void (*)(void *))dlsym(RTLD_NEXT, "free");
}

static void write_all(int to, const void *from, size_t bytes)
{
	for (const char *at = from; bytes;) {
		const ssize_t done = write(to, at, bytes);

		if (done <= 0)
			return;
		at += done;
		bytes -= (size_t)done;
	}
}

static uint64_t function_at(uint64_t pc)
{
	const size_t slot = (size_t)((pc * 0x9e3779b97f4a7c15ull) >> 48) % FUNCTIONS_MOST;

	if (functions[slot].pc != pc) {
		functions[slot].pc = pc;
		functions[slot].start = (uint64_t)_Unwind_FindEnclosingFunction((void *)(pc - 1));
	}
	return functions[slot].start ? functions[slot].start : pc;
}

struct walk {
	struct growth_log_stack stack;
	int passed;
};

static _Unwind_Reason_Code step(struct _Unwind_Context *context, void *to)
{
	struct walk *walk = to;
	const uint64_t pc = _Unwind_GetIP(context);

	if (walk->passed++ < OWN_FRAMES)
		return _URC_NO_REASON;
	if (!pc)
		return _URC_END_OF_STACK;
	walk->stack.functions[walk->stack.depth++] = function_at(pc);
	return walk->stack.depth < GROWTH_LOG_DEPTH ? _URC_NO_REASON : _URC_END_OF_STACK;
}

static uint32_t number_of(const struct growth_log_stack *stack)
{
	uint64_t hash = stack->depth;
	size_t slot;

	for (uint32_t i = 0; i < stack->depth; i++)
		hash = (hash ^ stack->functions[i]) * 0x9e3779b97f4a7c15ull;
	slot = (size_t)(hash >> 32) % (STACKS_MOST * 2);
	while (stack_index[slot]) {
		if (!memcmp(&stacks[stack_index[slot] - 1], stack, sizeof(*stack)))
			return stack_index[slot] - 1;
		slot = (slot + 1) % (STACKS_MOST * 2);
	}
	if (stack_count == STACKS_MOST)
		return 0;
	stacks[stack_count] = *stack;
	stack_index[slot] = ++stack_count;
	return stack_count - 1;
}

static void put(uint64_t address, size_t bytes, uint32_t stack)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	events[event_count++] = (struct growth_log_event){
	    .time_ns = (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec,
	    .address = address,
	    .bytes = bytes < UINT32_MAX ? (uint32_t)bytes : UINT32_MAX,
	    .stack = stack,
	};
	if (event_count == EVENTS) {
		write_all(fd, events, sizeof(events));
		event_count = 0;
	}
}

__attribute__((noinline)) static void log_alloc(void *block, size_t bytes)
{
	struct walk walk;

	if (fd < 0 || inside || !block || !bytes)
		return;
	inside = 1;
	memset(&walk, 0, sizeof(walk));
	pthread_mutex_lock(&lock);
	_Unwind_Backtrace(step, &walk);
	put((uint64_t)block, bytes, number_of(&walk.stack));
	pthread_mutex_unlock(&lock);
	inside = 0;
}

static void log_free(void *block)
{
	if (fd < 0 || inside || !block)
		return;
	inside = 1;
	pthread_mutex_lock(&lock);
	put((uint64_t)block, 0, 0);
	pthread_mutex_unlock(&lock);
	inside = 0;
}

__attribute__((constructor)) static void begin(void)
{
	const char *path = getenv("GROWTH_LOG");
	char name[4096];

	load();
	if (!path || strlen(path) > sizeof(name) - 16)
		return;
	strcat(strcpy(name, path), ".stacks");
	stacks_fd = open(name, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
	fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
	unsetenv("GROWTH_LOG"); /* what it starts would write into the same files */
}

__attribute__((destructor)) static void end(void)
{
	if (fd < 0)
		return;
	pthread_mutex_lock(&lock);
	inside = 1;
	write_all(fd, events, event_count * sizeof(*events));
	write_all(stacks_fd, stacks, stack_count * sizeof(*stacks));
	close(fd);
	close(stacks_fd);
	fd = -1;
	pthread_mutex_unlock(&lock);
}

PUBLIC void *malloc(size_t bytes)
{
	void *block;

	load();
	if (!real_malloc)
		return early_alloc(bytes);
	block = real_malloc(bytes);
	log_alloc(block, bytes);
	return block;
}

PUBLIC void *calloc(size_t count, size_t bytes)
{
	void *block;

	load();
	if (!real_calloc)
		return early_alloc(count * bytes);
	block = real_calloc(count, bytes);
	log_alloc(block, count * bytes);
	return block;
}

PUBLIC void free(void *block)
{
	if ((char *)block >= early && (char *)block < early + sizeof(early))
		return;
	log_free(block);
	if (real_free)
		real_free(block);
}

PUBLIC void *realloc(void *block, size_t bytes)
{
	void *moved;

	load();
	log_free(block);
	moved = real_realloc(block, bytes);
	log_alloc(moved, bytes);
	return moved;
}

PUBLIC void *memalign(size_t alignment, size_t bytes)
{
	void *block;

	load();
	block = real_memalign(alignment, bytes);
	log_alloc(block, bytes);
	return block;
}

PUBLIC void *aligned_alloc(size_t alignment, size_t bytes)
{
	return memalign(alignment, bytes);
}

PUBLIC int posix_memalign(void **to, size_t alignment, size_t bytes)
{
	load();
	*to = real_memalign(alignment, bytes);
	log_alloc(*to, bytes);
	return *to ? 0 : 12; /* ENOMEM */
}
