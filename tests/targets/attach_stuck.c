/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A program that never is at a safe point while it is told so: its only thread is in the loader then, in the
 * constructor of a library.
 *
 *     attach_stuck LIBRARY [beside|epoll]    says "ready"; the line "in" makes it load LIBRARY
 *                                            (attach_stuck_module), and the line after that lets it return
 *                                            from there; at the end of the input it ends with 0 if every
 *                                            line was read once. beside, epoll: another thread waits in
 *                                            poll or epoll_wait, and is at a safe point. It handles SIGTERM
 *                                            and SIGUSR1, and says "woken SIGNAL ERROR" for each that has
 *                                            ended its call
 */
/* build: -ldl */
#include <dlfcn.h>
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

/* One line, without stdio: nothing of it is in memory when the library reads the next. */
static int read_line(char *line, size_t bytes)
{
	size_t length = 0;

	while (length + 1 < bytes && read(0, line + length, 1) == 1 && line[length] != '\n')
		length++;
	line[length] = '\0';
	return length > 0;
}

static volatile sig_atomic_t last;

static void note(int signal)
{
	last = signal;
}

static void *wait_beside(void *argument)
{
	sigset_t handled;
	struct epoll_event event;
	const int set = strcmp(argument, "epoll") == 0 ? epoll_create1(0) : -1;

	sigemptyset(&handled);
	sigaddset(&handled, SIGTERM);
	sigaddset(&handled, SIGUSR1);
	pthread_sigmask(SIG_UNBLOCK, &handled, NULL);
	for (;;) {
		last = 0;
		const int got = set >= 0 ? epoll_wait(set, &event, 1, -1) : poll(NULL, 0, -1);
		printf("woken %d %s\n", (int)last, got < 0 && errno == EINTR ? "EINTR" : "?");
	}
	return NULL;
}

/* The other thread alone gets the signals that it handles. */
static int begin_beside(char *call)
{
	pthread_t thread;
	sigset_t handled;
	const struct sigaction action = {.sa_handler = note};

	sigemptyset(&handled);
	sigaddset(&handled, SIGTERM);
	sigaddset(&handled, SIGUSR1);
	pthread_sigmask(SIG_BLOCK, &handled, NULL);
	sigaction(SIGTERM, &action, NULL);
	sigaction(SIGUSR1, &action, NULL);
	return pthread_create(&thread, NULL, wait_beside, call);
}

int main(int argc, char *argv[])
{
	char line[16];

	setvbuf(stdout, NULL, _IONBF, 0);
	if (argc == 3 && begin_beside(argv[2]) != 0)
		return 3;
	puts("ready");
	while (argc >= 2 && read_line(line, sizeof(line))) {
		void *library = strcmp(line, "in") == 0 ? dlopen(argv[1], RTLD_NOW) : NULL;

		if (library)
			dlclose(library);
		free(malloc(1000));
		puts(library ? "out" : "other");
	}
	return 0;
}
