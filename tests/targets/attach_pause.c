/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Programs that must not stand still, and measure it: each does something every millisecond or two, and
 * prints how long the longest time in between was. Until SIGTERM.
 *
 *     attach_pause grow      its stack grows: a call deeper each millisecond, back after 400 (1.6 MB, and
 *                            twice that each time until it may grow no further)
 *     attach_pause fiber     a fiber every 2 ms on a stack where nothing was before, as PHP, Ruby and Boost
 *                            make them
 *     attach_pause stray     all on a stack of its own, where no function is called
 *     attach_pause absent    the same, and of that stack a page never comes (FUSE); 77: that cannot be
 *                            mounted
 *     attach_pause server    a thread for each connection; a child process connects, asks and measures
 */
#define _GNU_SOURCE
#include <alloca.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <ucontext.h>
#include <unistd.h>

#include "tests/unit/fuse_server.h"

enum { LEVELS = 400, LEVEL_BYTES = 4 << 10, STACK_BYTES = 64 << 10 };

static volatile sig_atomic_t stop;
static uint64_t last_ns, longest_ns;

static uint64_t now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

static void tick(void)
{
	const uint64_t now = now_ns();

	if (last_ns && now - last_ns > longest_ns)
		longest_ns = now - last_ns;
	last_ns = now;
}

static void rest(long us)
{
	const struct timespec time = {.tv_nsec = us * 1000};

	nanosleep(&time, NULL);
	tick();
}

/* ---- grow */

static size_t level_bytes = LEVEL_BYTES;

static int deeper(int levels)
{
	volatile char *frame = alloca(level_bytes);

	frame[0] = 1;
	rest(1000);
	return frame[0] + (levels && !stop ? deeper(levels - 1) : 0);
}

static void grow(void)
{
	struct rlimit limit;

	getrlimit(RLIMIT_STACK, &limit);
	puts("ready");
	while (!stop) {
		deeper(LEVELS);
		if (level_bytes * 2 * LEVELS < limit.rlim_cur / 2)
			level_bytes *= 2;
	}
}

/* ---- fiber */

static ucontext_t scheduler, fiber;

static void run_fiber(void)
{
	free(malloc(100));
	rest(2000);
}

static void fibers(void)
{
	puts("ready");
	while (!stop) {
		void *stack =
		    mmap(NULL, STACK_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

		getcontext(&fiber);
		fiber.uc_stack.ss_sp = stack;
		fiber.uc_stack.ss_size = STACK_BYTES;
		fiber.uc_link = &scheduler;
		makecontext(&fiber, run_fiber, 0);
		swapcontext(&scheduler, &fiber);
		madvise(stack, STACK_BYTES, MADV_DONTNEED); /* unmapped, it was the next one's place */
		rest(100);
	}
}

/* ---- stray, absent */

enum { HALF = STACK_BYTES / 2 };

/* A file as the stack: what of it is not there yet never comes. Its server ends with us. */
static void serve(int fuse_fd)
{
	const struct fuse_attr attr = {.ino = 2, .mode = S_IFREG | 0644, .nlink = 1, .size = STACK_BYTES};
	const struct fuse_entry_out entry = {.nodeid = 2, .attr = attr};
	const struct fuse_attr_out attributes = {.attr = attr};
	const struct fuse_open_out opened = {0};
	static char text[1 << 16], zeroes[STACK_BYTES];
	const struct fuse_in_header *request = (const void *)text;
	const struct fuse_read_in *wish = (const void *)(request + 1);

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	while (read(fuse_fd, text, sizeof(text)) > 0)
		if (request->opcode == FUSE_INIT)
			fuse_answer_init(fuse_fd, request);
		else if (request->opcode == FUSE_LOOKUP)
			fuse_answer(fuse_fd, request, 0, &entry, sizeof(entry));
		else if (request->opcode == FUSE_GETATTR)
			fuse_answer(fuse_fd, request, 0, &attributes, sizeof(attributes));
		else if (request->opcode == FUSE_OPEN)
			fuse_answer(fuse_fd, request, 0, &opened, sizeof(opened));
		else if (request->opcode == FUSE_READ && wish->offset < HALF)
			fuse_answer(fuse_fd, request, 0, zeroes, wish->size);
		else if (request->opcode == FUSE_READ)
			puts("asked");
		else if (request->opcode != FUSE_FORGET && request->opcode != FUSE_INTERRUPT)
			fuse_answer(fuse_fd, request, request->opcode == FUSE_RELEASE ? 0 : -ENOSYS, NULL, 0);
	_exit(0);
}

static int open_absent(void)
{
	char folder[] = "/tmp/attach_pause.XXXXXX", path[64];
	const int fuse_fd = mkdtemp(folder) ? fuse_mount(folder) : -1;

	if (fuse_fd >= 0 && fork() == 0)
		serve(fuse_fd);
	snprintf(path, sizeof(path), "%s/stack", folder);
	const int fd = fuse_fd < 0 ? -1 : open(path, O_RDONLY);
	if (fuse_fd >= 0) {
		close(fuse_fd);
		umount2(folder, MNT_DETACH);
	}
	rmdir(folder);
	return fd;
}

static void run_stray(void)
{
	puts("ready");
	while (!stop)
		rest(1000);
}

static int stray(int fd)
{
	char *stack = mmap(
	    NULL, STACK_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | (fd < 0 ? MAP_ANONYMOUS : 0), fd, 0);

	if (stack == MAP_FAILED)
		return 1;
	madvise(stack, STACK_BYTES, MADV_RANDOM); /* no page before it is touched */
	memset(stack, 1, HALF);                   /* the stack grows down from there */
	getcontext(&fiber);
	fiber.uc_stack.ss_sp = stack;
	fiber.uc_stack.ss_size = HALF;
	fiber.uc_link = &scheduler;
	makecontext(&fiber, run_stray, 0);
	swapcontext(&scheduler, &fiber);
	return 0;
}

/* ---- server */

static void *answer(void *argument)
{
	const int fd = (int)(intptr_t)argument;
	char request[64];
	ssize_t length = read(fd, request, sizeof(request));
	char *copy = malloc(4096);

	memset(copy, 'x', 4096);
	if (length > 0 && write(fd, copy, 64) != 64 && !stop)
		abort();
	free(copy);
	close(fd);
	return NULL;
}

static void ask(const struct sockaddr_in *address)
{
	char text[64] = "GET";
	const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	const struct linger reset = {1, 0}; /* else there are no ports left after a minute */

	last_ns = now_ns();
	if (connect(fd, (const struct sockaddr *)address, sizeof(*address)) != 0 || write(fd, text, 3) != 3 ||
	    recv(fd, text, sizeof(text), MSG_WAITALL) != (ssize_t)sizeof(text))
		stop = 1;
	else
		tick();
	setsockopt(fd, SOL_SOCKET, SO_LINGER, &reset, sizeof(reset));
	close(fd);
	usleep(1000);
}

static void on_term(int number)
{
	stop = number;
}

static int serve_requests(void)
{
	struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	socklen_t length = sizeof(address);
	const int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	pthread_attr_t detached;

	if (bind(listener, (const struct sockaddr *)&address, sizeof(address)) != 0 ||
	    listen(listener, 64) != 0 || getsockname(listener, (struct sockaddr *)&address, &length) != 0)
		return 1;
	const pid_t client = fork();
	if (client == 0) {
		close(listener); /* else nobody would end who is not accepted */
		while (!stop)
			ask(&address);
		printf("longest pause %.1f ms\n", (double)longest_ns / 1e6);
		_exit(0);
	}
	signal(SIGPIPE, SIG_IGN); /* the client ends first */
	pthread_attr_init(&detached);
	pthread_attr_setdetachstate(&detached, PTHREAD_CREATE_DETACHED);
	puts("ready");
	while (!stop) {
		pthread_t thread;
		const int fd = accept(listener, NULL, NULL);

		if (fd >= 0 && pthread_create(&thread, &detached, answer, (void *)(intptr_t)fd) != 0)
			return 1;
	}
	close(listener);
	kill(client, SIGTERM);
	return waitpid(client, NULL, 0) != client;
}

int main(int argc, char *argv[])
{
	const char *mode = argc > 1 ? argv[1] : "";

	sigaction(SIGTERM, &(struct sigaction){.sa_handler = on_term}, NULL);
	setvbuf(stdout, NULL, _IOLBF, 0);
	if (strcmp(mode, "server") == 0)
		return serve_requests();
	int status = 0, fd;
	if (strcmp(mode, "grow") == 0)
		grow();
	else if (strcmp(mode, "fiber") == 0)
		fibers();
	else if (strcmp(mode, "stray") == 0)
		status = stray(-1);
	else if ((fd = open_absent()) >= 0)
		status = stray(fd);
	else
		status = 77;
	printf("longest pause %.1f ms\n", (double)longest_ns / 1e6);
	return status;
}
