/* SPDX-License-Identifier: Apache-2.0 */
#include "sampler/inject/stopped_thread.h"

#include "pprof/text/clock.h"

#include <elf.h>
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/time.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <time.h>

#if defined(__x86_64__)
#include <cpuid.h>
#endif

enum {
	LOOKS_AT_ONCE = 64, /* most stops take a few microseconds */
	LOOK_NS = 50 * 1000,
	STANDS_MOST_US = 400 * 1000,
	/* linux/ptrace.h, since Linux 5.13 and 6.4 */
	GET_RSEQ_CONFIGURATION = 0x420f,
	GET_DISPATCH_CONFIGURATION = 0x4211,
};

#ifndef NT_X86_XSTATE
#define NT_X86_XSTATE 0x202
#endif

static int request(enum __ptrace_request what, pid_t tid, void *address, void *data)
{
	return ptrace(what, tid, address, data) == 0 ? 0 : -errno;
}

/* If a page of the target's holds us up meanwhile, the kernel ends us. */
static void guard(bool stands)
{
	const struct itimerval limit = {.it_value = {.tv_usec = stands ? STANDS_MOST_US : 0}};

	(void)setitimer(ITIMER_REAL, &limit, NULL);
}

/* Lets a stopped thread go, by the ptrace request WHAT. */
static int let_go(enum __ptrace_request how, pid_t tid, int signal)
{
	int error = request(how, tid, NULL, (void *)(uintptr_t)signal);

	guard(false);
	return error;
}

enum stopped_thread_stop stopped_thread_wait(pid_t tid, uint64_t limit_ns, int cancel_fd, int *signal)
{
	const struct timespec pause = {.tv_nsec = LOOK_NS};
	struct pollfd cancel = {.fd = cancel_fd, .events = POLLIN};
	uint64_t end_ns = clock_now_ns() + limit_ns;
	int status = 0;

	for (uint32_t looks = 0;; looks++) {
		pid_t got = waitpid(tid, &status, __WALL | WNOHANG);

		if (got < 0 && errno != EINTR)
			return STOPPED_THREAD_ENDED;
		if (got == tid)
			break;
		if (clock_now_ns() >= end_ns)
			return STOPPED_THREAD_TIMEOUT;
		if (looks >= LOOKS_AT_ONCE && ppoll(&cancel, 1, &pause, NULL) > 0)
			return STOPPED_THREAD_CANCELED;
	}
	if (!WIFSTOPPED(status))
		return STOPPED_THREAD_ENDED;
	guard(true);
	*signal = WSTOPSIG(status);
	if (status >> 16 != PTRACE_EVENT_STOP)
		return STOPPED_THREAD_SIGNAL;
	return *signal == SIGTRAP ? STOPPED_THREAD_INTERRUPTED : STOPPED_THREAD_GROUP;
}

/* linux/ptrace.h: struct ptrace_rseq_configuration */
static uint64_t read_sequences(pid_t tid)
{
	struct {
		uint64_t address;
		uint32_t bytes, signature, flags, pad;
	} found = {0};
	long got = ptrace(
	    (enum __ptrace_request)GET_RSEQ_CONFIGURATION, tid, (void *)(uintptr_t)sizeof(found), &found);

	return got == (long)sizeof(found) ? found.address : 0;
}

/* linux/ptrace.h: struct ptrace_sud_config */
static uint64_t read_dispatch(pid_t tid)
{
	struct {
		uint64_t mode, selector, offset, bytes;
	} found = {0};

	if (ptrace((enum __ptrace_request)GET_DISPATCH_CONFIGURATION, tid, (void *)(uintptr_t)sizeof(found),
	        &found) != 0 ||
	    !found.mode)
		return 0;
	return found.selector ? found.selector : UINT64_MAX;
}

int stopped_thread_read(struct stopped_thread *thread)
{
	struct iovec registers = {&thread->registers, sizeof(thread->registers)};
	struct iovec vector = {thread->vector, sizeof(thread->vector)};
	int error = request(PTRACE_GETREGSET, thread->tid, (void *)(uintptr_t)NT_PRSTATUS, &registers);

	if (!error && registers.iov_len != sizeof(thread->registers))
		error = -ENOEXEC; /* a 32-bit thread */
	if (!error)
		error = request(PTRACE_GETREGSET, thread->tid, (void *)(uintptr_t)NT_X86_XSTATE, &vector);
	thread->vector_bytes = vector.iov_len;
	if (!error)
		error = request(PTRACE_GETSIGMASK, thread->tid,
		    (void *)(uintptr_t)sizeof(thread->signal_mask), &thread->signal_mask);
	thread->sequences = read_sequences(thread->tid);
	thread->dispatch = read_dispatch(thread->tid);
	return error;
}

/* Waits for the stop that we asked for. Signals that come meanwhile are delivered. */
static int wait_until_stopped(const struct stopped_thread *thread, uint64_t limit_ns)
{
	const uint64_t end_ns = clock_now_ns() + limit_ns;

	for (;;) {
		uint64_t now_ns = clock_now_ns();
		int signal;

		switch (stopped_thread_wait(
		    thread->tid, end_ns > now_ns ? end_ns - now_ns : 0, thread->cancel_fd, &signal)) {
		case STOPPED_THREAD_INTERRUPTED:
			return 0;
		case STOPPED_THREAD_SIGNAL:
			(void)stopped_thread_go(thread, signal);
			break;
		case STOPPED_THREAD_GROUP: /* it stays stopped when we detach */
			return -EAGAIN;
		case STOPPED_THREAD_TIMEOUT:
			return -ETIMEDOUT;
		case STOPPED_THREAD_CANCELED:
			return -ECANCELED;
		default:
			return -ESRCH;
		}
	}
}

int stopped_thread_stop(struct stopped_thread *thread, pid_t tid, uint64_t limit_ns)
{
	thread->tid = tid;
	int error = request(PTRACE_SEIZE, tid, NULL, NULL);
	if (error)
		return error;
	thread->since_ns = clock_now_ns();
	error = stopped_thread_interrupt(thread);
	if (!error)
		error = wait_until_stopped(thread, limit_ns);
	if (!error)
		error = stopped_thread_read(thread);
	/* Only a stopped thread can be let go. */
	if (error && error != -ETIMEDOUT && error != -ECANCELED)
		stopped_thread_release(thread);
	return error;
}

void stopped_thread_release(struct stopped_thread *thread)
{
	(void)let_go(PTRACE_DETACH, thread->tid, 0);
}

int stopped_thread_peek(const struct stopped_thread *thread, uint64_t address, uint64_t *word)
{
	errno = 0;
	const long got = ptrace(PTRACE_PEEKDATA, thread->tid, (void *)(uintptr_t)address, NULL);

	*word = (uint64_t)got;
	return -errno;
}

uint64_t stopped_thread_stack_pointer(const struct stopped_thread *thread)
{
#if defined(__x86_64__)
	return thread->registers.rsp;
#else
	return thread->registers.sp;
#endif
}

int64_t stopped_thread_system_call(const struct stopped_thread *thread)
{
#if defined(__x86_64__)
	return (int64_t)thread->registers.orig_rax;
#else
	return -1;
#endif
}

uint64_t stopped_thread_program_counter(const struct stopped_thread *thread)
{
#if defined(__x86_64__)
	return thread->registers.rip;
#else
	return thread->registers.pc;
#endif
}

uint64_t stopped_thread_pointer(const struct stopped_thread *thread)
{
#if defined(__x86_64__)
	return thread->registers.fs_base;
#else
	return 0;
#endif
}

int stopped_thread_set_registers(
    const struct stopped_thread *thread, const struct user_regs_struct *registers)
{
	struct iovec all = {(void *)(uintptr_t)registers, sizeof(*registers)};

	return request(PTRACE_SETREGSET, thread->tid, (void *)(uintptr_t)NT_PRSTATUS, &all);
}

int stopped_thread_set_mask(const struct stopped_thread *thread, uint64_t mask)
{
	return request(PTRACE_SETSIGMASK, thread->tid, (void *)(uintptr_t)sizeof(mask), &mask);
}

int stopped_thread_set_vector(const struct stopped_thread *thread)
{
	struct iovec all = {(void *)(uintptr_t)thread->vector, thread->vector_bytes};

	return request(PTRACE_SETREGSET, thread->tid, (void *)(uintptr_t)NT_X86_XSTATE, &all);
}

int stopped_thread_go(const struct stopped_thread *thread, int signal)
{
	return let_go(PTRACE_CONT, thread->tid, signal);
}

int stopped_thread_listen(const struct stopped_thread *thread)
{
	return let_go(PTRACE_LISTEN, thread->tid, 0);
}

int stopped_thread_interrupt(const struct stopped_thread *thread)
{
	return request(PTRACE_INTERRUPT, thread->tid, NULL, NULL);
}

/* ---- the vector state in a signal frame */

enum {
	LEGACY_BYTES = 512,
	HEADER_BYTES = 64,
	DESCRIPTION_AT = 464, /* in the legacy part, where ptrace puts the enabled components */
	TILE_DATA = 18,       /* enabled only on request: frames of other threads have none */
};
#define MAGIC_1 0x46505853u
#define MAGIC_2 0x46505845u

struct description {
	uint32_t magic, extended_bytes;
	uint64_t components;
	uint32_t area_bytes, reserved[7];
};

/* The end of the last component, in the standard form of the area. */
static size_t area_bytes(uint64_t components)
{
	size_t end = LEGACY_BYTES + HEADER_BYTES;
#if defined(__x86_64__)
	for (uint32_t i = 2; i < 63; i++) {
		uint32_t bytes = 0, offset = 0, c, d;

		if (components >> i & 1 && __get_cpuid_count(0xd, i, &bytes, &offset, &c, &d) &&
		    (size_t)offset + bytes > end)
			end = (size_t)offset + bytes;
	}
#endif
	return end;
}

size_t stopped_thread_frame_vector(const unsigned char *area, size_t bytes, unsigned char *frame)
{
	struct description description = {.magic = MAGIC_1};
	uint64_t enabled, used;
	const uint32_t mark = MAGIC_2;

	if (bytes < LEGACY_BYTES + HEADER_BYTES)
		return 0;
	memcpy(&enabled, area + DESCRIPTION_AT, sizeof(enabled));
	memcpy(&used, area + LEGACY_BYTES, sizeof(used));
	description.components = enabled & ~(UINT64_C(1) << TILE_DATA);
	size_t end = area_bytes(description.components);
	if (used >> TILE_DATA & 1 || end > bytes)
		return 0;
	description.area_bytes = (uint32_t)end;
	description.extended_bytes = (uint32_t)(end + sizeof(mark));
	memcpy(frame, area, end);
	memcpy(frame + DESCRIPTION_AT, &description, sizeof(description));
	memcpy(frame + end, &mark, sizeof(mark));
	return end + sizeof(mark);
}
