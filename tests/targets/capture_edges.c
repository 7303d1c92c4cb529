/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Programs at the edges of what a hook may rely on, one per mode; each ends with status 0 if it is left
 * alone.
 *
 *   no_tsc    forbids itself the time stamp counter, then allocates
 *   strict    enters seccomp's strict mode, then allocates
 *   hole      allocates on a coroutine's stack 50 MiB below the main one, with nothing mapped in between
 *   odd       the same with a mapping of an odd length
 *   guard     allocates on a coroutine's stack within the main one, with a page above it that cannot be read
 *   mapped_guard  the same, where that page is a mapping
 *   thread_guard  the same within a thread's stack
 *   attached before|after  like hole, at each line that it reads; mapped before the first, or then; and at
 *             the end like thread_guard
 *   twice     runs the trigger a second time for its first block, as a signal at the right moment does
 *   drop HOW  root forks a worker, which drops to uid 65534 by setuid, setreuid or
 *             setresuid (HOW: uid, reuid, resuid), and looks for the master's secret in shared
 *             memory
 */
#define _GNU_SOURCE
#include "tests/targets/own_region.h"

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <ucontext.h>
#include <unistd.h>
#include <linux/seccomp.h>

enum { BLOCKS = 1000, BLOCK_BYTES = 64, STACK_BYTES = 256 << 10, SCAN_BYTES = 26 << 20 };

static void *volatile keep[BLOCKS];

__attribute__((noinline)) static void allocate(void)
{
	for (int i = 0; i < BLOCKS; i++)
		keep[i] = malloc(BLOCK_BYTES);
	for (int i = 0; i < BLOCKS; i += 2)
		free(keep[i]);
}

static void release(void)
{
	for (int i = 1; i < BLOCKS; i += 2)
		free(keep[i]);
}

static int no_tsc(void)
{
	if (prctl(PR_SET_TSC, PR_TSC_SIGSEGV) != 0)
		return 77;
	allocate();
	return 0;
}

static int strict(void)
{
	free(malloc(1 << 20)); /* the heap need not grow in there */
	allocate();
	release();
	if (prctl(PR_SET_SECCOMP, SECCOMP_MODE_STRICT) != 0)
		return 77;
	allocate();
	syscall(SYS_exit, 0);
	return 1;
}

/* ---- coroutines */

static ucontext_t main_context, coroutine;

static void run_on(void *stack)
{
	getcontext(&coroutine);
	coroutine.uc_stack.ss_sp = stack;
	coroutine.uc_stack.ss_size = STACK_BYTES;
	coroutine.uc_link = &main_context;
	makecontext(&coroutine, allocate, 0);
	swapcontext(&main_context, &coroutine);
}

/* NULL: something is mapped there. */
static void *map_below_the_main_stack(size_t bytes)
{
	uintptr_t low = ((uintptr_t)__builtin_frame_address(0) & ~(uintptr_t)0xfffff) - (50 << 20);
	void *stack = mmap((void *)low, bytes, PROT_READ | PROT_WRITE,
	    MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);

	return stack == (void *)low ? stack : NULL;
}

static int hole(size_t bytes)
{
	void *stack = map_below_the_main_stack(bytes);

	if (!stack)
		return 77;
	run_on(stack);
	return 0;
}

/* The guard is above the coroutine's stack, and below what called this. */
static int guard(bool by_mmap)
{
	unsigned char area[2 * STACK_BYTES];
	const uintptr_t page_bytes = (uintptr_t)sysconf(_SC_PAGESIZE);
	unsigned char *stack = (unsigned char *)(((uintptr_t)area + page_bytes - 1) & ~(page_bytes - 1));
	void *page = stack + STACK_BYTES;

	if (by_mmap
	        ? mmap(page, page_bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) != page
	        : mprotect(page, page_bytes, PROT_NONE) != 0)
		return 77;
	run_on(stack);
	return mprotect(page, page_bytes, PROT_READ | PROT_WRITE) != 0;
}

/* In a thread that has allocated nothing, once it may go on; it lives on then. */
struct worker {
	int go[2], done[2];
};

static void *guard_of_thread(void *argument)
{
	const struct worker *worker = argument;
	char byte;

	if (read(worker->go[0], &byte, 1) == 1) {
		byte = (char)guard(false);
		if (write(worker->done[1], &byte, 1) == 1)
			pause();
	}
	return NULL;
}

static bool worker_start(struct worker *worker)
{
	pthread_t thread;

	return pipe(worker->go) == 0 && pipe(worker->done) == 0 &&
	    pthread_create(&thread, NULL, guard_of_thread, worker) == 0;
}

static int worker_run(const struct worker *worker)
{
	char byte = 1;

	return write(worker->go[1], &byte, 1) == 1 && read(worker->done[0], &byte, 1) == 1 ? byte : 1;
}

static int thread_guard(void)
{
	struct worker worker;

	return worker_start(&worker) ? worker_run(&worker) : 1;
}

/* For who attaches: at each line it allocates, on its own stack first. */
static int attached(const char *when)
{
	char line[16];
	const bool before = !strcmp(when, "before");
	struct worker worker;
	void *stack = before ? map_below_the_main_stack(STACK_BYTES) : NULL;

	if ((before && !stack) || !worker_start(&worker))
		return 77;
	for (puts("ready"), fflush(stdout); fgets(line, sizeof(line), stdin); puts("done"), fflush(stdout)) {
		allocate();
		release();
		stack = stack ? stack : map_below_the_main_stack(STACK_BYTES);
		if (!stack)
			return 77;
		run_on(stack);
		release();
	}
	return worker_run(&worker);
}

static int twice(void)
{
	allocate();
	struct region_header *header = own_region();
	if (!header)
		return 0;
	const struct region_slot *slot =
	    ((const struct region_segment *)((unsigned char *)header + header->offsets.segments))->slots;
	const struct region_sample *sample = &slot->sample;
	if (slot_word_state(slot->word) != SLOT_LIVE && slot_word_state(slot->word) != SLOT_FREED)
		return 77;
	((void (*)(uint64_t, uint64_t, uint64_t, uint64_t, uint64_t, uint64_t))header->trigger_address)(
	    header->key, sample->slot, sample->seq, sample->size_bytes, sample->period_bytes,
	    sample->time_ns);
	return 0;
}

/* ---- drop */

static int secret_seen(const char *secret)
{
	char line[4352];
	FILE *maps = fopen("/proc/self/maps", "r");
	int seen = 0;

	while (maps && fgets(line, sizeof(line), maps)) {
		unsigned long start, end;

		if (!strstr(line, "/memfd:heaptap") || sscanf(line, "%lx-%lx", &start, &end) != 2)
			continue;
		size_t bytes = end - start < SCAN_BYTES ? end - start : SCAN_BYTES;
		seen |= memmem((void *)start, bytes, secret, strlen(secret)) != NULL;
	}
	if (maps)
		fclose(maps);
	return seen;
}

__attribute__((noinline)) static void worker_allocates(void)
{
	allocate();
	__asm__ volatile("" ::: "memory"); /* no tail call: the function is looked for in the profile */
}

static int become_nobody(const char *how)
{
	return !strcmp(how, "uid")  ? setuid(65534)
	    : !strcmp(how, "reuid") ? setreuid(65534, 65534)
	                            : setresuid(65534, 65534, 65534);
}

/* Looks all the time while the master allocates, until the pipe is closed, and once more. */
static int worker(const char *how, int ready, int work)
{
	static char secret[64]; /* not on the worker's own stack, which is copied too */
	char byte;
	int seen = 0;

	if (setgid(65534) != 0 || become_nobody(how) != 0 || write(ready, "", 1) != 1)
		return 2;
	while (read(work, &byte, 1) == 1) {
		snprintf(secret, sizeof(secret), "secret=%s%d-%d", "hunter", 2, (int)getppid());
		seen |= secret_seen(secret);
	}
	printf("worker: %s\n", seen ? "seen" : "not seen");
	worker_allocates();
	fflush(stdout);
	return seen;
}

__attribute__((noinline)) static void master_allocates(void)
{
	volatile char secret[64];

	snprintf((char *)secret, sizeof(secret), "secret=%s%d-%d", "hunter", 2, (int)getpid());
	allocate();
	secret[0] = 0;
}

static int drop(const char *how)
{
	int ready[2], work[2], status = 1;
	char byte;

	if (pipe(ready) != 0 || pipe(work) != 0)
		return 77;
	pid_t pid = fork();
	if (pid == 0) {
		close(work[1]);
		exit(worker(how, ready[1], work[0]));
	}
	if (read(ready[0], &byte, 1) != 1)
		return 1;
	for (int i = 0; i < 20; i++) {
		master_allocates();
		if (write(work[1], "", 1) != 1)
			break;
	}
	close(work[1]);
	waitpid(pid, &status, 0);
	return WIFEXITED(status) ? WEXITSTATUS(status) : 1;
}

int main(int argc, char **argv)
{
	const char *mode = argc > 1 ? argv[1] : "";

	return !strcmp(mode, "no_tsc")      ? no_tsc()
	    : !strcmp(mode, "strict")       ? strict()
	    : !strcmp(mode, "hole")         ? hole(STACK_BYTES)
	    : !strcmp(mode, "odd")          ? hole(STACK_BYTES - 4095)
	    : !strcmp(mode, "guard")        ? guard(false)
	    : !strcmp(mode, "mapped_guard") ? guard(true)
	    : !strcmp(mode, "thread_guard") ? thread_guard()
	    : !strcmp(mode, "attached")     ? attached(argc > 2 ? argv[2] : "")
	    : !strcmp(mode, "twice")        ? twice()
	    : !strcmp(mode, "drop")         ? drop(argc > 2 ? argv[2] : "uid")
	                                    : 2;
}
