/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a program sees of a system call in which it is attached to.
 *
 *     attach_calls CALL      says "ready", makes the call, and says its name, its result, the error and
 *     whether it
 *                            took the time that it was told to take
 *
 * Calls with a timeout wait for TIMED_MS; the others for a line on standard input, or for SIGUSR2.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/select.h>
#include <sys/sem.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

enum { TIMED_MS = 3000 };

static const struct timespec timed = {.tv_sec = TIMED_MS / 1000};

static struct timespec until(clockid_t clock)
{
	struct timespec now;
	clock_gettime(clock, &now);
	now.tv_sec += TIMED_MS / 1000;
	return now;
}

static long call_poll(void)
{
	return poll(NULL, 0, TIMED_MS);
}

static long call_poll_input(void)
{
	struct pollfd input = {0, POLLIN, 0};
	return poll(&input, 1, -1);
}

static long call_select(void)
{
	struct timeval limit = {.tv_sec = TIMED_MS / 1000};
	return select(0, NULL, NULL, NULL, &limit);
}

static long wait_epoll(int timeout)
{
	struct epoll_event event = {.events = EPOLLIN};
	int set = epoll_create1(0);
	epoll_ctl(set, EPOLL_CTL_ADD, 0, &event);
	return epoll_wait(set, &event, 1, timeout);
}

static long call_epoll_input(void)
{
	return wait_epoll(-1);
}

static long call_epoll(void)
{
	return wait_epoll(TIMED_MS);
}

static long call_read(void)
{
	char byte;
	return read(0, &byte, 1);
}

static long call_nanosleep(void)
{
	return nanosleep(&timed, NULL);
}

static long call_sem_timedwait(void)
{
	sem_t semaphore;
	struct timespec end = until(CLOCK_REALTIME);
	sem_init(&semaphore, 0, 0);
	return sem_timedwait(&semaphore, &end);
}

static long call_futex(void)
{
	static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
	static pthread_cond_t condition = PTHREAD_COND_INITIALIZER;
	struct timespec end = until(CLOCK_REALTIME);
	pthread_mutex_lock(&mutex);
	return errno = pthread_cond_timedwait(&condition, &mutex, &end);
}

static long call_sigwait(void)
{
	sigset_t set;
	sigemptyset(&set);
	sigaddset(&set, SIGUSR2);
	return sigwaitinfo(&set, NULL);
}

static long call_semop(void)
{
	struct sembuf take = {0, -1, 0};
	int set = semget(IPC_PRIVATE, 1, 0600);
	struct timespec limit = timed;
	long result = semtimedop(set, &take, 1, &limit);
	int saved = errno;
	semctl(set, 0, IPC_RMID);
	errno = saved;
	return result;
}

/* No call at all: registers hold a pattern while time passes. The number of those that differ after it. */
static long call_registers(void)
{
	static unsigned char in[16][32], out[16][32];
	static unsigned long general[6];
	long differ = 0;
	for (int i = 0; i < 16 * 32; i++)
		in[i / 32][i % 32] = (unsigned char)(i * 7 + i / 32);
	for (int round = 0; __builtin_cpu_supports("avx") && round < 3; round++) {
		unsigned long turns = 400ul * 1000 * 1000;
		__asm__ volatile(
		    ".irp n,0,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15\nvmovdqu 32*\\n(%1), %%ymm\\n\n.endr\n"
		    "mov $0x1111, %%r10\nmov $0x2222, %%r11\nmov $0x3333, %%r12\nmov $0x4444, %%r13\n"
		    "mov $0x5555, %%r14\nmov $0x6666, %%r15\nstd\n"
		    "1: dec %0\njnz 1b\n"
		    "pushf\npop %%rax\ncld\nshr $10, %%rax\nand $1, %%rax\nxor $1, %%rax\nadd %%rax, %%r10\n"
		    "mov %%r10, (%3)\nmov %%r11, 8(%3)\nmov %%r12, 16(%3)\nmov %%r13, 24(%3)\n"
		    "mov %%r14, 32(%3)\nmov %%r15, 40(%3)\n"
		    ".irp n,0,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15\nvmovdqu %%ymm\\n, 32*\\n(%2)\n.endr\n"
		    "vzeroupper"
		    : "+r"(turns)
		    : "r"(in), "r"(out), "r"(general)
		    : "memory", "cc", "rax", "r10", "r11", "r12", "r13", "r14", "r15", "xmm0", "xmm1", "xmm2",
		    "xmm3", "xmm4", "xmm5", "xmm6", "xmm7", "xmm8", "xmm9", "xmm10", "xmm11", "xmm12",
		    "xmm13", "xmm14", "xmm15");
		differ += memcmp(in, out, sizeof(in)) != 0;
		for (unsigned long i = 0; i < 6; i++)
			differ += general[i] != 0x1111 * (i + 1);
	}
	return differ;
}

static const struct {
	const char *name;
	long (*make)(void);
	int timed;
} calls[] = {
    {"poll", call_poll, 1},
    {"poll_input", call_poll_input, 0},
    {"select", call_select, 1},
    {"epoll_input", call_epoll_input, 0},
    {"epoll", call_epoll, 1},
    {"read", call_read, 0},
    {"nanosleep", call_nanosleep, 1},
    {"sem_timedwait", call_sem_timedwait, 1},
    {"futex", call_futex, 1},
    {"sigwait", call_sigwait, 0},
    {"semop", call_semop, 1},
    {"registers", call_registers, 0},
};

int main(int argc, char *argv[])
{
	sigset_t set;
	sigemptyset(&set);
	sigaddset(&set, SIGUSR2);
	sigprocmask(SIG_BLOCK, &set, NULL);
	for (size_t i = 0; argc == 2 && i < sizeof(calls) / sizeof(calls[0]); i++) {
		struct timespec begin, end;
		if (strcmp(calls[i].name, argv[1]) != 0)
			continue;
		setvbuf(stdout, NULL, _IONBF, 0);
		puts("ready");
		errno = 0;
		clock_gettime(CLOCK_MONOTONIC, &begin);
		long result = calls[i].make();
		int error = errno;
		clock_gettime(CLOCK_MONOTONIC, &end);
		long ms = (end.tv_sec - begin.tv_sec) * 1000 + (end.tv_nsec - begin.tv_nsec) / 1000000;
		printf("%s %ld %s %s\n", argv[1], result, error ? strerrorname_np(error) : "-",
		    !calls[i].timed || ms >= TIMED_MS - 5 ? "whole" : "short");
		return 0;
	}
	return 2;
}
