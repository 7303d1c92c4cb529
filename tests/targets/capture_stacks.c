/* SPDX-License-Identifier: Apache-2.0 */
/* build: -fno-builtin -Wno-all */
/*
 * Allocates on stacks that are not the thread's own, each with a page behind its end that may not be touched.
 *
 *   capture_stacks MODE [ARGUMENT...]
 */
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/time.h>
#include <time.h>
#include <ucontext.h>
#include <unistd.h>

#define NAMED __attribute__((noinline, noclone))
enum { STACK = 64 << 10, PAGE = 4096 };
static _Atomic long objects, bytes, inuse;
static volatile sig_atomic_t allocating; /* the thread is between the call of malloc and its return */

NAMED void *take(size_t size)
{
	allocating = 1;
	void *block = malloc(size);
	allocating = 0;
	if (!block)
		abort();
	objects++;
	bytes += (long)size;
	inuse += (long)size;
	return block;
}

static void drop(void *block, size_t size)
{
	free(block);
	inuse -= (long)size;
}

static void report(void)
{
	char text[128];
	int length =
	    snprintf(text, sizeof(text), "truth %d %ld %ld %ld\n", (int)getpid(), objects, bytes, inuse);

	if (write(1, text, (size_t)length) != length)
		_exit(3);
}

static void must(int status)
{
	if (status)
		_exit(4);
}

/* A stack between two pages that may not be touched. */
static char *a_stack(size_t size)
{
	char *all = mmap(NULL, size + 2 * PAGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	must(all == MAP_FAILED || mprotect(all + PAGE, size, PROT_READ | PROT_WRITE));
	return all + PAGE;
}

static void on_signal(int number)
{
	drop(take(700), 700);
	take(300);
}

static int mode_altstack(int argc, char *argv[])
{
	stack_t stack = {.ss_sp = a_stack(STACK), .ss_size = STACK};
	struct sigaction action = {.sa_handler = on_signal, .sa_flags = SA_ONSTACK};

	must(sigaltstack(&stack, NULL) || sigaction(SIGUSR1, &action, NULL));
	for (int i = 0; i < 30; i++) {
		take(50);
		raise(SIGUSR1);
	}
	report();
	return 0;
}

enum { FIBERS = 20 };
static ucontext_t home, fibers[FIBERS];

NAMED static void fiber(int number)
{
	for (int i = 0; i < 10; i++) {
		drop(take(1000), 1000);
		take(100);
		swapcontext(&fibers[number], &fibers[(number + 1) % FIBERS]);
	}
	swapcontext(&fibers[number], &home);
}

static void *run_fibers(void *argument)
{
	for (int i = 0; i < FIBERS; i++) {
		getcontext(&fibers[i]);
		/* Some so small that one page is all there is above the stack pointer. */
		size_t size = i % 2 ? STACK : 4 * PAGE;
		fibers[i].uc_stack.ss_sp = a_stack(size);
		fibers[i].uc_stack.ss_size = size;
		fibers[i].uc_link = &home;
		makecontext(&fibers[i], (void (*)(void))fiber, 1, i);
	}
	must(swapcontext(&home, &fibers[0]));
	return NULL;
}

static int mode_fibers(int argc, char *argv[])
{
	run_fibers(NULL);
	pthread_t thread;
	must(pthread_create(&thread, NULL, run_fibers, NULL));
	pthread_join(thread, NULL);
	report();
	return 0;
}

NAMED static size_t deep(int depth)
{
	volatile char frame[1024];

	frame[0] = (char)depth;
	if (depth == 0) {
		drop(take(2000), 2000);
		take(200);
		return (size_t)frame[0];
	}
	return deep(depth - 1) + (size_t)frame[0];
}

static void *deep_thread(void *argument)
{
	for (int i = 0; i < 5; i++)
		deep((int)(intptr_t)argument);
	return NULL;
}

/* Stacks that the program gives, small and large, and 1 MiB of frames. */
static int mode_deep(int argc, char *argv[])
{
	const struct {
		size_t bytes;
		intptr_t depth;
	} kinds[] = {{16 << 10, 2}, {64 << 10, 20}, {200 << 10, 100}, {2 << 20, 1000}, {8 << 20, 6000}};
	for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
		pthread_attr_t attr;
		pthread_t thread;

		must(pthread_attr_init(&attr) ||
		    pthread_attr_setstack(&attr, a_stack(kinds[i].bytes), kinds[i].bytes) ||
		    pthread_create(&thread, &attr, deep_thread, (void *)kinds[i].depth));
		pthread_join(thread, NULL);
	}
	deep_thread((void *)1000);
	report();
	return 0;
}

/* Interrupted anywhere, also in the middle of the hook; needs an allocator that may be interrupted
 * (capture_bump.so). Prints how many interruptions fell into a call of malloc: what a handler allocates there
 * may go unsampled. */
static volatile long handled, interrupted;

static void on_timer(int number)
{
	sig_atomic_t was = allocating;

	interrupted += was;
	take(64);
	drop(take(128), 128);
	allocating = was;
	handled++;
}

static int mode_timer(int argc, char *argv[])
{
	struct sigaction action = {.sa_handler = on_timer, .sa_flags = SA_RESTART};
	struct itimerval timer = {.it_interval = {.tv_usec = 200}, .it_value = {.tv_usec = 200}};

	sigaction(SIGALRM, &action, NULL);
	setitimer(ITIMER_REAL, &timer, NULL);
	time_t end = time(NULL) + 2;
	while (time(NULL) < end || handled < 500) {
		void *blocks[50];

		for (int i = 0; i < 50; i++)
			blocks[i] = take(100 + (size_t)i);
		for (int i = 0; i < 50; i++)
			drop(blocks[i], 100 + (size_t)i);
		usleep(2000); /* also a place to be interrupted in; and not a flood */
	}
	memset(&timer, 0, sizeof(timer));
	setitimer(ITIMER_REAL, &timer, NULL);
	report();
	char text[64];
	int length = snprintf(text, sizeof(text), "interrupted %ld\n", interrupted);
	must(write(1, text, (size_t)length) != length);
	return 0;
}

static const struct mode {
	const char *name;
	int (*run)(int argc, char *argv[]);
} modes[] = {
    {"altstack", mode_altstack},
    {"fibers", mode_fibers},
    {"deep", mode_deep},
    {"timer", mode_timer},
};

int main(int argc, char *argv[])
{
	for (size_t i = 0; argc > 1 && i < sizeof(modes) / sizeof(modes[0]); i++)
		if (strcmp(argv[1], modes[i].name) == 0)
			return modes[i].run(argc, argv);
	return 2;
}
