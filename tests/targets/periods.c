/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A program whose threads may have been in the middle of an interval for long. It makes a thread, and says
 * "ready"; at each line WHO COUNT BYTES on its standard input it allocates so many blocks of so many bytes,
 * which stay, and says "done":
 *
 *     main     in its main thread, by main_hold
 *     thread   in the thread that was there from the start, by thread_hold
 *     fresh    in a new thread, by fresh_hold
 *     child    in a forked child, which ends, by child_hold
 */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static pthread_barrier_t begin, end;
static long count, bytes;

/* No two are alike, which would be one function then. */
#define HOLD(name)                                            \
	static void *volatile name##_last;                    \
	__attribute__((noinline)) static void *name(void *of) \
	{                                                     \
		for (long i = 0; i < count; i++)              \
			name##_last = malloc((size_t)bytes);  \
		return of;                                    \
	}
HOLD(main_hold)
HOLD(thread_hold)
HOLD(fresh_hold)
HOLD(child_hold)

static void *stay(void *of)
{
	for (;;) {
		pthread_barrier_wait(&begin);
		thread_hold(of);
		pthread_barrier_wait(&end);
	}
	return of;
}

static void in_fresh_thread(void)
{
	pthread_t thread;

	if (pthread_create(&thread, NULL, fresh_hold, NULL) != 0 || pthread_join(thread, NULL) != 0)
		exit(3);
}

static void in_child(void)
{
	const pid_t child = fork();
	int status;

	if (child == 0) {
		child_hold(NULL);
		_exit(0);
	}
	if (waitpid(child, &status, 0) != child || status != 0)
		exit(4);
}

static void work(const char *who)
{
	if (strcmp(who, "main") == 0) {
		main_hold(NULL);
	} else if (strcmp(who, "thread") == 0) {
		pthread_barrier_wait(&begin);
		pthread_barrier_wait(&end);
	} else if (strcmp(who, "fresh") == 0) {
		in_fresh_thread();
	} else if (strcmp(who, "child") == 0) {
		in_child();
	} else {
		exit(2);
	}
}

int main(void)
{
	static char line[100], who[100];
	pthread_t thread;

	pthread_barrier_init(&begin, NULL, 2);
	pthread_barrier_init(&end, NULL, 2);
	if (pthread_create(&thread, NULL, stay, NULL) != 0)
		return 1;
	setvbuf(stdin, NULL, _IONBF, 0);
	setvbuf(stdout, NULL, _IONBF, 0);
	puts("ready");
	while (fgets(line, sizeof(line), stdin) && sscanf(line, "%99s %ld %ld", who, &count, &bytes) == 3) {
		work(who);
		puts("done");
	}
	return 0;
}
