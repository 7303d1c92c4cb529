/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Calls of dlclose that do no more than count down, and of dlsym, beside what else needs the loader.
 *
 * fork N: a thread opens and closes a library, while another forks N children, each of which opens another
 * one. Prints how many children did not end.
 * look N: the same with dlsym, when a line has come on standard input.
 * callback N: N times a callback of dl_iterate_phdr waits for a thread that calls dlclose. Prints "done".
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <link.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { CHILD_SECONDS = 20 };

static const char library[] = "libm.so.6";
static sem_t called, closed;

static void open_and_close(void)
{
	void *handle = dlopen(library, RTLD_NOW);

	if (!handle || dlclose(handle) != 0)
		abort();
}

static void *churn(void *argument)
{
	for (;;)
		open_and_close();
	return argument;
}

static void *look(void *argument)
{
	while (dlsym(RTLD_DEFAULT, "puts"))
		;
	return argument;
}

static int in_child(void)
{
	alarm(CHILD_SECONDS);
	return dlopen("libutil.so.1", RTLD_NOW) ? 0 : 1;
}

static int fork_beside(void *(*what)(void *argument), int rounds)
{
	pthread_t thread;
	int hung = 0;

	if (pthread_create(&thread, NULL, what, NULL) != 0)
		return 1;
	for (int i = 0; i < rounds && hung < 3; i++) {
		int status;
		const pid_t child = fork();

		if (child == 0)
			_exit(in_child());
		if (waitpid(child, &status, 0) != child)
			return 1;
		hung += status != 0;
	}
	printf("%d\n", hung);
	fflush(stdout);
	_exit(0);
}

static void *close_when_called(void *argument)
{
	for (;;) {
		sem_wait(&called);
		open_and_close();
		sem_post(&closed);
	}
	return argument;
}

static int wait_for_close(struct dl_phdr_info *info, size_t size, void *argument)
{
	sem_post(&called);
	sem_wait(&closed);
	return 1;
}

static int callback_beside(int rounds)
{
	pthread_t thread;

	if (sem_init(&called, 0, 0) != 0 || sem_init(&closed, 0, 0) != 0 ||
	    pthread_create(&thread, NULL, close_when_called, NULL) != 0)
		return 1;
	for (int i = 0; i < rounds; i++)
		dl_iterate_phdr(wait_for_close, NULL);
	puts("done");
	return 0;
}

int main(int argc, char **argv)
{
	if (argc < 3 || !dlopen(library, RTLD_NOW))
		return 2;
	free(malloc(1 << 20));
	const int rounds = atoi(argv[2]);
	if (strcmp(argv[1], "callback") == 0)
		return callback_beside(rounds);
	if (strcmp(argv[1], "fork") == 0)
		return fork_beside(churn, rounds);
	puts("ready");
	fflush(stdout);
	getchar();
	return fork_beside(look, rounds);
}
