/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a program sees of a system call in which it is attached to.
 *
 *     attach_calls CALL [beside]    says "ready", makes the call, and says its name, its result, the error,
 *                                   and "whole" if it took the time that it was told to take ("short") and
 *                                   dispositions, masks, environment and limits are as before ("changed")
 *
 * beside: another thread waits in poll meanwhile. Calls with a timeout wait for $ATTACH_CALLS_MS (3000, whole
 * seconds); the others for a line on standard input, or for SIGUSR2.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/select.h>
#include <sys/sem.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>
#include <linux/io_uring.h>
#include <linux/time_types.h>

static int timed_ms = 3000;
static struct timespec timed;

static struct timespec until(clockid_t clock)
{
	struct timespec now;

	clock_gettime(clock, &now);
	now.tv_sec += timed_ms / 1000;
	return now;
}

static long call_poll(void)
{
	return poll(NULL, 0, timed_ms);
}

static long call_poll_input(void)
{
	struct pollfd input = {0, POLLIN, 0};

	return poll(&input, 1, -1);
}

static long call_select(void)
{
	struct timeval limit = {.tv_sec = timed_ms / 1000};

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
	return wait_epoll(timed_ms);
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

static long call_sigtimed(void)
{
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGUSR2);
	return sigtimedwait(&set, NULL, &timed);
}

static int listening(struct sockaddr_in *address)
{
	socklen_t length = sizeof(*address);
	int listener = socket(AF_INET, SOCK_STREAM, 0);

	*address = (struct sockaddr_in){.sin_family = AF_INET, .sin_addr = {htonl(INADDR_LOOPBACK)}};
	if (bind(listener, (struct sockaddr *)address, length) != 0 || listen(listener, 1) != 0 ||
	    getsockname(listener, (struct sockaddr *)address, &length) != 0)
		exit(3);
	return listener;
}

/* A child connects when there is a line for it. */
static long call_accept(void)
{
	struct sockaddr_in address;
	int listener = listening(&address);

	if (fork() == 0) {
		char byte;
		ssize_t got = read(0, &byte, 1);

		_exit(got != 1 ||
		    connect(socket(AF_INET, SOCK_STREAM, 0), (void *)&address, sizeof(address)) != 0);
	}
	return accept(listener, NULL, NULL) >= 0;
}

/* What a client library with a time limit does: the kernel never restarts such a call. */
static long call_receive(void)
{
	struct sockaddr_in address;
	const struct timeval limit = {.tv_sec = timed_ms / 1000};
	char byte;
	int listener = listening(&address), client = socket(AF_INET, SOCK_STREAM, 0);

	setsockopt(client, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof(limit));
	if (connect(client, (void *)&address, sizeof(address)) != 0 || accept(listener, NULL, NULL) < 0)
		exit(3);
	return recv(client, &byte, 1, 0);
}

enum { LONG_BYTES = 1 << 20 };

/* More than a pipe holds; a child reads it when there is a line. A stop ends the call where it is. */
static long call_write(void)
{
	int ends[2];

	if (pipe(ends) != 0)
		return -1;
	if (fork() == 0) {
		char bytes[4096];

		close(ends[1]);
		if (read(0, bytes, 1) == 1)
			while (read(ends[0], bytes, sizeof(bytes)) > 0)
				;
		_exit(0);
	}
	close(ends[0]);
	return write(ends[1], calloc(1, LONG_BYTES), LONG_BYTES) == LONG_BYTES;
}

/* A ring without liburing. What is submitted: a poll of standard input. */
struct ring {
	int fd;
	struct io_uring_params parameters;
	char *queue;
	struct io_uring_sqe *entries;
};

static void ring_open(struct ring *ring)
{
	*ring = (struct ring){.fd = -1};
	ring->fd = (int)syscall(SYS_io_uring_setup, 4, &ring->parameters);
	if (ring->fd < 0) {
		printf("skip %s\n", strerror(errno));
		exit(77);
	}
	ring->queue = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, ring->fd, IORING_OFF_SQ_RING);
	ring->entries = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, ring->fd, IORING_OFF_SQES);
	if (ring->queue == MAP_FAILED || ring->entries == MAP_FAILED)
		exit(3);
	ring->entries[0] =
	    (struct io_uring_sqe){.opcode = IORING_OP_POLL_ADD, .fd = 0, .poll32_events = POLLIN};
	((unsigned int *)(void *)(ring->queue + ring->parameters.sq_off.array))[0] = 0;
	__atomic_store_n(
	    (unsigned int *)(void *)(ring->queue + ring->parameters.sq_off.tail), 1, __ATOMIC_RELEASE);
}

static long ring_enter(const struct ring *ring, unsigned int submit, const struct timespec *limit)
{
	struct __kernel_timespec time = {.tv_sec = limit ? limit->tv_sec : 0};
	struct io_uring_getevents_arg argument = {.ts = (uint64_t)(uintptr_t)&time};

	return syscall(SYS_io_uring_enter, ring->fd, submit, 1,
	    IORING_ENTER_GETEVENTS | (limit ? IORING_ENTER_EXT_ARG : 0), limit ? &argument : NULL,
	    limit ? sizeof(argument) : 0);
}

static long call_uring_input(void)
{
	struct ring ring;

	ring_open(&ring);
	ring_enter(&ring, 1, &(struct timespec){0});
	return ring_enter(&ring, 0, NULL);
}

static long call_uring(void)
{
	struct ring ring;

	ring_open(&ring);
	return ring_enter(&ring, 0, &timed);
}

/* Submits and waits at once: 1, one is submitted, whether or not it has waited for it. */
static long call_uring_submit(void)
{
	struct ring ring;

	ring_open(&ring);
	long result = ring_enter(&ring, 1, NULL);
	struct pollfd input = {0, POLLIN, 0};
	return result == 1 && poll(&input, 1, 0) == 1;
}

static void *wait_beside(void *argument)
{
	(void)poll(NULL, 0, -1);
	return argument;
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

#if defined(__x86_64__)
/* The same of what is behind them: the wide half of the registers, masks, x87, and how both round. */
__attribute__((target("avx512f,avx512bw"))) static long compare_wide(void)
{
	static unsigned char in[32][64], out[32][64];
	static unsigned long masks[8], masks_out[8];

	static long double pi = 3.14159265358979323846L, pi_out;
	unsigned long turns = 400ul * 1000 * 1000;
	unsigned int rounding = 0x5f80, rounding_out = 0, rounding_before;
	unsigned short control = 0x0a7f, control_out = 0, control_before;
	for (int i = 0; i < 32 * 64; i++)
		in[i / 64][i % 64] = (unsigned char)(i * 11 + i / 64);
	for (unsigned long i = 0; i < 8; i++)
		masks[i] = 0x0123456789abcdef * (i + 1);
	__asm__ volatile("stmxcsr %0\nfnstcw %1" : "=m"(rounding_before), "=m"(control_before));
	__asm__ volatile(
	    ".irp n,0,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17,18,19,20,21,22,23,24,25,26,27,28,29,30,31\n"
	    "vmovdqu64 64*\\n(%[in]), %%zmm\\n\n.endr\n"
	    ".irp n,1,2,3,4,5,6,7\nkmovq 8*\\n(%[masks]), %%k\\n\n.endr\n"
	    "ldmxcsr %[rounding]\nfldcw %[control]\nfldt %[pi]\n"
	    "1: dec %0\njnz 1b\n"
	    "fstpt %[pi_out]\nfnstcw %[control_out]\nstmxcsr %[rounding_out]\n"
	    ".irp n,1,2,3,4,5,6,7\nkmovq %%k\\n, 8*\\n(%[masks_out])\n.endr\n"
	    ".irp n,0,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17,18,19,20,21,22,23,24,25,26,27,28,29,30,31\n"
	    "vmovdqu64 %%zmm\\n, 64*\\n(%[out])\n.endr\n"
	    "vzeroupper"
	    : "+r"(turns), [pi_out] "=m"(pi_out), [control_out] "=m"(control_out),
	    [rounding_out] "=m"(rounding_out)
	    : [in] "r"(in), [out] "r"(out), [masks] "r"(masks), [masks_out] "r"(masks_out),
	    [rounding] "m"(rounding), [control] "m"(control), [pi] "m"(pi)
	    : "memory", "cc", "xmm0", "xmm1", "xmm2", "xmm3", "xmm4", "xmm5", "xmm6", "xmm7", "xmm8", "xmm9",
	    "xmm10", "xmm11", "xmm12", "xmm13", "xmm14", "xmm15", "xmm16", "xmm17", "xmm18", "xmm19", "xmm20",
	    "xmm21", "xmm22", "xmm23", "xmm24", "xmm25", "xmm26", "xmm27", "xmm28", "xmm29", "xmm30", "xmm31",
	    "k1", "k2", "k3", "k4", "k5", "k6", "k7", "st");
	__asm__ volatile("ldmxcsr %0\nfldcw %1" : : "m"(rounding_before), "m"(control_before));
	return (memcmp(in, out, sizeof(in)) != 0) + (memcmp(masks + 1, masks_out + 1, 7 * 8) != 0) +
	    (pi != pi_out) + (rounding != rounding_out) + (control != control_out);
}
#endif

static long call_registers_wide(void)
{
	long differ = 0;
#if defined(__x86_64__)
	for (int round = 0; __builtin_cpu_supports("avx512bw") && round < 3; round++)
		differ += compare_wide();
#endif
	return differ;
}

/* ---- what nobody outside can see */

struct inside {
	struct {
		void (*handler)(int);
		unsigned long masked; /* the kernel's part of it: the libc leaves the rest as it was */
		int flags;
	} actions[_NSIG];
	unsigned long blocked;
	stack_t stack;
	char *variables[256], **environment;
	unsigned long variable_bytes;
	struct rlimit limits[RLIM_NLIMITS];
	char name[16];
};

static void look_inside(struct inside *inside)
{
	memset(inside, 0, sizeof(*inside));
	for (int i = 1; i < _NSIG; i++) {
		struct sigaction action;

		if (sigaction(i, NULL, &action) != 0)
			continue;
		inside->actions[i].handler = action.sa_handler;
		inside->actions[i].flags = action.sa_flags;
		memcpy(&inside->actions[i].masked, &action.sa_mask, sizeof(inside->actions[i].masked));
	}
	sigset_t blocked;
	sigprocmask(SIG_BLOCK, NULL, &blocked);
	memcpy(&inside->blocked, &blocked, sizeof(inside->blocked));
	sigaltstack(NULL, &inside->stack);
	inside->environment = environ;
	for (int i = 0; environ[i] && i < 256; i++) {
		inside->variables[i] = environ[i];
		for (const char *c = environ[i]; *c; c++)
			inside->variable_bytes = inside->variable_bytes * 31 + (unsigned char)*c;
	}
	for (unsigned int i = 0; i < RLIM_NLIMITS; i++)
		getrlimit((__rlimit_resource_t)i, &inside->limits[i]);
	prctl(PR_GET_NAME, inside->name);
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
    {"sigtimed", call_sigtimed, 1},
    {"semop", call_semop, 1},
    {"accept", call_accept, 0},
    {"receive", call_receive, 1},
    {"write", call_write, 0},
    {"uring_input", call_uring_input, 0},
    {"uring_submit", call_uring_submit, 0},
    {"uring", call_uring, 1},
    {"registers", call_registers, 0},
    {"registers_wide", call_registers_wide, 0},
};

int main(int argc, char *argv[])
{
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGUSR2);
	static struct inside before, after;
	pthread_t beside;
	const char *wanted_ms = getenv("ATTACH_CALLS_MS");
	timed_ms = wanted_ms ? atoi(wanted_ms) : timed_ms;
	timed.tv_sec = timed_ms / 1000;
	sigprocmask(SIG_BLOCK, &set, NULL);
	if (argc == 3 && pthread_create(&beside, NULL, wait_beside, NULL) != 0)
		return 3;
	for (size_t i = 0; argc >= 2 && i < sizeof(calls) / sizeof(calls[0]); i++) {
		struct timespec begin, end;

		if (strcmp(calls[i].name, argv[1]) != 0)
			continue;
		setvbuf(stdout, NULL, _IONBF, 0);
		puts("ready");
		look_inside(&before);
		errno = 0;
		clock_gettime(CLOCK_MONOTONIC, &begin);
		long result = calls[i].make();
		int error = errno;
		clock_gettime(CLOCK_MONOTONIC, &end);
		long ms = (end.tv_sec - begin.tv_sec) * 1000 + (end.tv_nsec - begin.tv_nsec) / 1000000;
		look_inside(&after);
		printf("%s %ld %s %s\n", argv[1], result, error ? strerrorname_np(error) : "-",
		    memcmp(&before, &after, sizeof(before)) != 0 ? "changed"
		        : !calls[i].timed || ms >= timed_ms - 5  ? "whole"
		                                                 : "short");
		return 0;
	}
	return 2;
}
