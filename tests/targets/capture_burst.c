/* SPDX-License-Identifier: Apache-2.0 */
/* build: -fno-builtin */
/*
 * Large blocks in quick succession, all with one stack that nobody has seen before.
 *
 *   capture_burst one FILE COUNT          in the main thread
 *   capture_burst threads FILE COUNT N    in each of N threads at once
 *   capture_burst forks FILE COUNT N      in each of N forked children
 *   capture_burst execs FILE COUNT N      in each of N children that execute this program
 *
 * Before that it makes FILE and waits for FILE.go; then it makes FILE.done and waits for FILE.end.
 */
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { BLOCK_BYTES = 3 << 20, THREADS_MAX = 64 };

static int count;
static pthread_barrier_t start;

__attribute__((noinline, noclone)) static void burst(void)
{
	for (int i = 0; i < count; i++)
		free(malloc(BLOCK_BYTES));
	__asm__ volatile("");
}

static void *thread(void *unused)
{
	pthread_barrier_wait(&start);
	burst();
	return unused;
}

static void threads(int number)
{
	pthread_t ids[THREADS_MAX];

	pthread_barrier_init(&start, NULL, (unsigned)number);
	for (int i = 0; i < number; i++)
		pthread_create(&ids[i], NULL, thread, NULL);
	for (int i = 0; i < number; i++)
		pthread_join(ids[i], NULL);
}

static void children(int number, char *const *executed)
{
	for (int i = 0; i < number; i++) {
		if (fork() != 0)
			continue;
		if (executed)
			execv("/proc/self/exe", executed);
		else
			burst();
		_exit(executed != NULL);
	}
	while (wait(NULL) > 0)
		;
}

static void make(const char *file, const char *suffix)
{
	char path[4096];

	snprintf(path, sizeof(path), "%s%s", file, suffix);
	close(open(path, O_CREAT | O_WRONLY, 0600));
}

static void wait_for(const char *file, const char *suffix)
{
	char path[4096];

	snprintf(path, sizeof(path), "%s%s", file, suffix);
	while (access(path, F_OK) != 0)
		usleep(1000);
}

int main(int argc, char **argv)
{
	char *again[] = {argv[0], "burst", argc > 3 ? argv[3] : NULL, NULL};
	const int number = argc > 4 ? atoi(argv[4]) : 1;

	if (argc < 3 || number < 1 || number > THREADS_MAX)
		return 2;
	count = atoi(argv[argc > 3 ? 3 : 2]);
	if (strcmp(argv[1], "burst") == 0) {
		burst();
		return 0;
	}
	make(argv[2], "");
	wait_for(argv[2], ".go");
	if (strcmp(argv[1], "threads") == 0)
		threads(number);
	else if (strcmp(argv[1], "one") == 0)
		burst();
	else
		children(number, strcmp(argv[1], "execs") == 0 ? again : NULL);
	make(argv[2], ".done");
	wait_for(argv[2], ".end");
	return 0;
}
