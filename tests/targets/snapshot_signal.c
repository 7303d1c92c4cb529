/* SPDX-License-Identifier: Apache-2.0 */
/*
 * snapshot_signal STEP...: what a program sees of its own SIGUSR1. Each step prints one line.
 *
 *   tell      disposition, flags and mask, by sigaction and by signal and its elders
 *   handle    installs a handler, tells what was there before
 *   default   sets the default, tells what was there before
 *   ignore    ignores it
 *   raise     sends it to itself, tells how often its handler has run, and errno
 *   fork      forks a child that tells and raises; tells how it ended
 *   wait      allocates 1000 blocks, says "ready", then waits for a byte on stdin, restarted after signals
 *   poll      says "ready", then polls stdin without an end
 *   thread    a thread sends it to itself
 *   timer     a timer sends it
 *   exec      executes itself with the steps that follow
 *
 * With HANDLER=early in the environment the handler is installed before any library's constructor.
 */
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

typedef void handler_fn(int);

static volatile sig_atomic_t handled;
static void *volatile held[1000];

static void on_signal(int number)
{
	(void)number;
	handled++;
}

static void install_early(int argc, char **argv, char **environment)
{
	(void)argc;
	(void)argv;
	for (; *environment; environment++)
		if (strcmp(*environment, "HANDLER=early") == 0)
			signal(SIGUSR1, on_signal);
}
__attribute__((section(".preinit_array"), used)) static void (*early)(int, char **, char **) = install_early;

static const char *name_of(handler_fn *handler)
{
	return handler == SIG_DFL  ? "default"
	    : handler == SIG_IGN   ? "ignored"
	    : handler == on_signal ? "ours"
	                           : "STRANGE";
}

static void tell(void)
{
	struct sigaction action;

	memset(&action, 0xff, sizeof(action));
	if (sigaction(SIGUSR1, NULL, &action) != 0)
		puts("sigaction failed");
	printf("is %s, flags %x, mask %s\n", name_of(action.sa_handler),
	    (unsigned int)action.sa_flags & ~0x04000000u,
	    sigismember(&action.sa_mask, SIGUSR2) ? "some" : "empty");
}

static void set(handler_fn *handler)
{
	struct sigaction action = {.sa_handler = handler}, old;

	if (sigaction(SIGUSR1, &action, &old) == 0)
		printf("was %s\n", name_of(old.sa_handler));
	/* and again, the old way */
	printf("was %s\n", name_of(signal(SIGUSR1, handler)));
}

static void raise_it(void)
{
	errno = 4711;
	kill(getpid(), SIGUSR1);
	printf("handled %d, errno %d\n", (int)handled, errno);
}

static void fork_it(void)
{
	fflush(stdout);
	pid_t child = fork();
	int status;
	if (child == 0) {
		tell();
		raise_it();
		fflush(stdout);
		for (int i = 0; i < 100; i++)
			usleep(5000); /* cut short by signals, that is all right */
		_exit(7);
	}
	if (waitpid(child, &status, 0) == child)
		printf("child %s %d\n", WIFEXITED(status) ? "status" : "signal",
		    WIFEXITED(status) ? WEXITSTATUS(status) : WTERMSIG(status));
}

static void wait_for_byte(void)
{
	char byte;

	for (size_t i = 0; i < 1000; i++)
		held[i] = malloc(1000);
	puts("ready");
	fflush(stdout);
	ssize_t got = read(0, &byte, 1);
	printf("read %zd\n", got);
}

static void poll_for_byte(void)
{
	struct pollfd in = {.fd = 0, .events = POLLIN};

	puts("ready");
	fflush(stdout);
	int got = poll(&in, 1, -1);
	printf("poll %d %s\n", got, got < 0 ? strerror(errno) : "");
}

static void *raise_in_thread(void *unused)
{
	pthread_kill(pthread_self(), SIGUSR1);
	return unused;
}

static void raise_by_thread(void)
{
	pthread_t thread;

	if (pthread_create(&thread, NULL, raise_in_thread, NULL) == 0)
		pthread_join(thread, NULL);
	printf("handled %d\n", (int)handled);
}

static void raise_by_timer(void)
{
	struct sigevent event = {.sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGUSR1};
	const struct itimerspec soon = {.it_value.tv_nsec = 1000000};
	const sig_atomic_t before = handled;
	timer_t timer;

	if (timer_create(CLOCK_MONOTONIC, &event, &timer) == 0 && timer_settime(timer, 0, &soon, NULL) == 0)
		for (int i = 0; i < 1000 && handled == before; i++)
			usleep(5000);
	printf("handled %d\n", (int)handled);
}

int main(int argc, char **argv)
{
	for (int i = 1; i < argc; i++) {
		if (strcmp(argv[i], "tell") == 0)
			tell();
		else if (strcmp(argv[i], "handle") == 0)
			set(on_signal);
		else if (strcmp(argv[i], "default") == 0)
			set(SIG_DFL);
		else if (strcmp(argv[i], "ignore") == 0)
			set(SIG_IGN);
		else if (strcmp(argv[i], "raise") == 0)
			raise_it();
		else if (strcmp(argv[i], "fork") == 0)
			fork_it();
		else if (strcmp(argv[i], "wait") == 0)
			wait_for_byte();
		else if (strcmp(argv[i], "poll") == 0)
			poll_for_byte();
		else if (strcmp(argv[i], "thread") == 0)
			raise_by_thread();
		else if (strcmp(argv[i], "timer") == 0)
			raise_by_timer();
		else if (strcmp(argv[i], "exec") == 0) {
			fflush(stdout);
			argv[i] = argv[0];
			execv(argv[0], argv + i);
		}
		fflush(stdout);
	}
	return 0;
}
