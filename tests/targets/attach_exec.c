/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A program that executes itself again while somebody attaches to it, and whose old memory lives on in
 * another process. Without randomized addresses, the new program's thread has the addresses that are found in
 * the old memory. Prints "ready" in each life, and ends at the end of its input.
 */
#define _GNU_SOURCE
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/personality.h>
#include <sys/syscall.h>
#include <unistd.h>

static char **words;

static int keep_memory(void *parent)
{
	while (syscall(SYS_getppid) == (long)parent)
		poll(NULL, 0, 10);
	_exit(0);
}

static void live_again(const char *life)
{
	words[1] = (char *)life;
	execv("/proc/self/exe", words);
	_exit(1);
}

/* Waits until the main thread is traced. */
static void *watch(void *unused)
{
	char path[64], text[4096];

	snprintf(path, sizeof(path), "/proc/self/task/%d/status", getpid());
	for (;;) {
		FILE *status = fopen(path, "r");

		text[fread(text, 1, sizeof(text) - 1, status)] = '\0';
		fclose(status);
		const char *tracer = strstr(text, "TracerPid:\t");
		if (tracer && tracer[strlen("TracerPid:\t")] != '0')
			live_again("2");
	}
	return unused;
}

int main(int count, char *arguments[])
{
	struct pollfd input = {.fd = 0, .events = POLLIN};
	pthread_t watcher;
	static char stack[65536];

	words = arguments;
	if (count != 2)
		return 1;
	if (arguments[1][0] == '0') {
		personality(ADDR_NO_RANDOMIZE);
		live_again("1");
	}
	puts("ready");
	fflush(stdout);
	if (arguments[1][0] == '1') {
		clone(keep_memory, stack + sizeof(stack), CLONE_VM | SIGCHLD, (void *)(long)getpid());
		pthread_create(&watcher, NULL, watch, NULL);
	}
	while (poll(&input, 1, 10) == 0)
		;
	return 0;
}
