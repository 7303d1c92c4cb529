/* SPDX-License-Identifier: Apache-2.0 */
/*
 * daemon_steps STEP...: does one after the other, for tests of the daemon:
 *
 *     on            until a daemon has turned the region on, and this thread counts by its period
 *     off           until it has turned it off
 *     hold N BYTES  N blocks more, by the function hold
 *     drop N        frees the last N
 *     churn N       allocates and frees N blocks of 100 bytes, by the function churn
 *     touch FILE    makes a file
 *     await FILE    until there is such a file
 *     spin FILE     likewise, and is busy
 *     fork          the rest is done by a child; the parent waits for it
 *     leave         likewise, and the parent ends at once, as services do that go to the background
 *     thread N ...  the next N steps are done by a thread, which has ended before those after them
 *     user UID      becomes that user
 *     crash N       ends by signal N
 *     exec FILE ... executes another program
 */
#include "proto/region.h"

#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { BLOCKS = 1 << 20, WARM_BYTES = 100000 };

static void *blocks[BLOCKS];
static size_t count;

static void nap(long ms)
{
	const struct timespec time = {ms / 1000, ms % 1000 * 1000000};

	nanosleep(&time, NULL);
}

__attribute__((noinline)) static void *hold(size_t bytes)
{
	void *block = malloc(bytes);

	__asm__ volatile("" : "+r"(block) : : "memory");
	return block;
}

__attribute__((noinline)) static void churn(long rounds)
{
	for (long i = 0; i < rounds; i++) {
		void *block = malloc(100);

		__asm__ volatile("" : "+r"(block) : : "memory");
		free(block);
	}
}

/* The region that the library has mapped; NULL: none. Without allocating. */
static const struct region_header *find_region(void)
{
	static char text[1 << 18];
	size_t length = 0;
	ssize_t got;
	int fd = open("/proc/self/maps", O_RDONLY | O_CLOEXEC);

	while (fd >= 0 && (got = read(fd, text + length, sizeof(text) - 1 - length)) > 0)
		length += (size_t)got;
	text[length] = '\0';
	close(fd);
	for (char *line = strtok(text, "\n"); line; line = strtok(NULL, "\n")) {
		char *end;
		uintptr_t start = strtoul(line, &end, 16);

		if (!strstr(line, " rw-s 00000000 ") ||
		    (!strstr(line, "/memfd:heaptap") && !strstr(line, "/dev/zero")))
			continue;
		const struct region_header *header = (const void *)start;
		if (header->magic == REGION_MAGIC)
			return header;
	}
	return NULL;
}

/* The interval that is under way was drawn with the offer's period: it ends here. */
static void on(void)
{
	const struct region_header *header = find_region();

	while (!header || header->mode == REGION_MODE_OFF) {
		nap(5);
		header = header ? header : find_region();
	}
	for (int i = 0; i < 1000; i++) {
		void *block = hold(WARM_BYTES);

		free(block);
	}
}

static void off(void)
{
	const struct region_header *header = find_region();

	while (header && header->mode != REGION_MODE_OFF)
		nap(5);
}

static void await(const char *path)
{
	while (access(path, F_OK) != 0)
		nap(10);
}

__attribute__((noinline)) static void spin(const char *path)
{
	while (access(path, F_OK) != 0)
		for (volatile int i = 0; i < 1000000; i++)
			;
}

static void touch(const char *path)
{
	int fd = open(path, O_CREAT | O_WRONLY | O_CLOEXEC, 0666);

	if (fd < 0)
		abort();
	close(fd);
}

static void become_child(bool leave)
{
	int status;
	pid_t pid = fork();

	if (pid < 0)
		abort();
	if (pid == 0)
		return;
	if (leave)
		_exit(0);
	while (waitpid(pid, &status, 0) != pid)
		;
	_exit(WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status));
}

static void crash(int number)
{
	signal(number, SIG_DFL);
	raise(number);
	abort();
}

static char **do_step(char **at);

static void *do_some(void *argument)
{
	char **at = argument;

	for (long n = atol(*at++); n > 0; n--)
		at = do_step(at);
	return at;
}

static char **be_thread(char **at)
{
	pthread_t thread;
	void *next;

	if (pthread_create(&thread, NULL, do_some, at) != 0 || pthread_join(thread, &next) != 0)
		abort();
	return next;
}

/* Returns where the next one is. */
static char **do_step(char **at)
{
	const char *step = *at++;

	if (strcmp(step, "on") == 0)
		on();
	else if (strcmp(step, "off") == 0)
		off();
	else if (strcmp(step, "hold") == 0) {
		size_t bytes = (size_t)atol(at[1]);

		for (long n = atol(at[0]); n > 0 && count < BLOCKS; n--)
			blocks[count++] = hold(bytes);
		at += 2;
	} else if (strcmp(step, "drop") == 0)
		for (long n = atol(*at++); n > 0 && count; n--)
			free(blocks[--count]);
	else if (strcmp(step, "churn") == 0)
		churn(atol(*at++));
	else if (strcmp(step, "touch") == 0)
		touch(*at++);
	else if (strcmp(step, "await") == 0)
		await(*at++);
	else if (strcmp(step, "spin") == 0)
		spin(*at++);
	else if (strcmp(step, "fork") == 0)
		become_child(false);
	else if (strcmp(step, "leave") == 0)
		become_child(true);
	else if (strcmp(step, "thread") == 0)
		at = be_thread(at);
	else if (strcmp(step, "user") == 0) {
		if (setuid((uid_t)atoi(*at++)) != 0)
			abort();
	} else if (strcmp(step, "crash") == 0)
		crash(atoi(*at++));
	else if (strcmp(step, "exec") == 0)
		execv(at[0], at);
	else
		abort();
	return at;
}

int main(int argc, char *argv[])
{
	for (char **at = argv + 1; at < argv + argc;)
		at = do_step(at);
	return 0;
}
