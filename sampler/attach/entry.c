/* SPDX-License-Identifier: Apache-2.0 */
#include "sampler/attach/entry.h"

#include "sampler/linux/clock.h"
#include "sampler/linux/proc.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

enum {
	STACK_BYTES = 256 << 10,
	THREADS_MOST = 65536,
	ROUNDS_COLD = 1, /* in the first, no thread stands still while we meet new code */
	PAUSE_NS = 300 * 1000,
	LOOKS_LEAST = 256,  /* also where we get so little of a CPU that they take longer than the limit */
	REFRESH_TRIES = 64, /* then the mappings are read again: threads come and go */
};
/* A thread that runs stops when it next gets a CPU. */
#define STOP_LIMIT_NS   (UINT64_C(10) * 1000000000)
#define SEARCH_LIMIT_NS (UINT64_C(10) * 1000000000)
#define SEARCH_MOST_NS  (UINT64_C(60) * 1000000000)
#define CALL_LIMIT_NS   (UINT64_C(10) * 1000000000)

/* A search for a thread, over all of them again and again. */
struct search {
	struct entry *entry;
	const struct remote_call *call;
	struct stopped_thread *thread;
	unsigned char *stack;
	uint64_t end_ns;
	uint32_t round;
	bool any_willing; /* some thread is in no call that would end */
	int error;
	bool called;
	uint32_t verdicts[SAFE_POINT_VERDICTS];
};

int entry_open(struct entry *entry, struct address_space *space, struct modules *modules)
{
	*entry = (struct entry){.space = space};
	const struct mapping *libc = address_space_file(space, "libc.so.6", false);
	int error = libc ? safe_point_open(&entry->point, space, modules) : -ENOEXEC;
	if (!error)
		error = remote_code_find(&entry->code, space, libc);
	entry->dlopen = exports_address(&entry->point.libc, "dlopen");
	if (!entry->dlopen) /* before glibc 2.34 */
		entry->dlopen = exports_address(&entry->point.libc, "__libc_dlopen_mode");
	if (!error && !entry->dlopen)
		error = -ENOENT;
	if (error)
		snprintf(entry->reason, sizeof(entry->reason), "its C library cannot be read: %s",
		    strerror(-error));
	return error;
}

void entry_close(struct entry *entry)
{
	if (entry->space)
		safe_point_close(&entry->point);
	entry->space = NULL;
}

/* It would stop only when it has what it waits for. */
static bool is_uninterruptible(pid_t tid)
{
	char status[512];
	const char *state =
	    proc_read(tid, "status", status, sizeof(status)) > 0 ? strstr(status, "\nState:\t") : NULL;
	return state && state[8] == 'D';
}

/* Of a socket of the process: calls that wait for it end with EINTR at a stop. */
static bool has_time_limit(pid_t pid, int fd)
{
	static const int names[] = {SO_RCVTIMEO, SO_SNDTIMEO};
	bool limited = false;
	int pid_fd = (int)syscall(SYS_pidfd_open, pid, 0);
	int copy = pid_fd < 0 ? -1 : (int)syscall(SYS_pidfd_getfd, pid_fd, fd, 0);
	for (size_t i = 0; copy >= 0 && i < sizeof(names) / sizeof(names[0]); i++) {
		struct timeval limit = {0};
		socklen_t length = sizeof(limit);
		limited = limited ||
		    (getsockopt(copy, SOL_SOCKET, names[i], &limit, &length) == 0 &&
		        (limit.tv_sec || limit.tv_usec));
	}
	if (copy >= 0)
		close(copy);
	if (pid_fd >= 0)
		close(pid_fd);
	return limited;
}

/* What the thread is doing: false if it would not stop now, or its call would end. */
static bool is_willing(pid_t pid, pid_t tid, bool *ends)
{
	char text[256];
	long number;
	uint64_t arguments[6] = {0};
	*ends = false;
	if (is_uninterruptible(tid) || proc_read(tid, "syscall", text, sizeof(text)) <= 0)
		return false;
	if (sscanf(text, "%ld %" SCNx64 " %" SCNx64 " %" SCNx64 " %" SCNx64 " %" SCNx64 " %" SCNx64, &number,
	        &arguments[0], &arguments[1], &arguments[2], &arguments[3], &arguments[4], &arguments[5]) < 7)
		return strncmp(text, "running", 7) == 0;
	int socket = remote_call_socket((uint64_t)number, arguments);
	*ends = remote_call_ends_call((uint64_t)number, arguments) ||
	    (socket >= 0 && has_time_limit(pid, socket));
#if defined(SYS_fork) /* aarch64 has clone alone */
	if (number == SYS_vfork || number == SYS_fork)
		return false;
#endif
	return number != SYS_clone && number != SYS_clone3 && number != SYS_execve && number != SYS_exit &&
	    number != SYS_exit_group;
}

static enum safe_point_verdict check(struct search *search)
{
	const struct address_space *space = search->entry->space;
	uint64_t sp = stopped_thread_stack_pointer(search->thread);
	const struct mapping *mapping = address_space_find(space, sp);
	size_t want = STACK_BYTES;
	if (!mapping)
		return SAFE_POINT_STACK;
	if (mapping->end - sp < want)
		want = mapping->end - sp;
	size_t got = address_space_read_some(space, sp, search->stack, want);
	if (search->round < ROUNDS_COLD)
		remote_call_decline(search->thread);
	return safe_point_check(&search->entry->point, search->thread, search->stack, got);
}

static bool is_late(const struct search *search)
{
	uint64_t now_ns = clock_now_ns();
	return now_ns >= search->end_ns + (SEARCH_MOST_NS - SEARCH_LIMIT_NS) ||
	    (now_ns >= search->end_ns && search->entry->tries >= LOOKS_LEAST);
}

/* Returns 1 when the search is over. */
static int try_thread(void *context, pid_t tid)
{
	struct search *search = context;
	struct entry *entry = search->entry;
	bool ends, willing = is_willing(entry->space->pid, tid, &ends);
	search->any_willing = search->any_willing || (willing && !ends);
	if (!willing || (ends && (search->any_willing || search->round < ROUNDS_COLD + 2)))
		return is_late(search);
	int error = stopped_thread_stop(search->thread, tid, STOP_LIMIT_NS);
	if (error) {
		search->error = error;
		return error == -EPERM || is_late(search);
	}
	entry->tries++;
	enum safe_point_verdict verdict = check(search);
	search->verdicts[verdict]++;
	if (search->round < ROUNDS_COLD)
		return 0;
	if (verdict != SAFE_POINT_SAFE) {
		remote_call_decline(search->thread);
		return is_late(search);
	}
	search->error = remote_call_run(search->call, search->thread, CALL_LIMIT_NS);
	entry->stood_ns = clock_now_ns() - search->thread->since_ns;
	search->called = search->error != -EAGAIN;
	return search->called || is_late(search);
}

/* Which verdict was the most frequent? */
static enum safe_point_verdict worst(const struct search *search)
{
	enum safe_point_verdict most = SAFE_POINT_UNKNOWN;
	for (int i = SAFE_POINT_SAFE + 1; i < SAFE_POINT_VERDICTS; i++)
		if (search->verdicts[i] > search->verdicts[most])
			most = (enum safe_point_verdict)i;
	return most;
}

static void explain(struct entry *entry, const struct search *search)
{
	if (search->error == -ETIMEDOUT)
		snprintf(entry->reason, sizeof(entry->reason),
		    "the call in its thread %d has not returned in 10 s; it goes on by itself",
		    (int)search->thread->tid);
	else if (search->called || search->error == -ESRCH)
		snprintf(entry->reason, sizeof(entry->reason), "it ended, or executed another program");
	else if (search->error == -EPERM)
		snprintf(entry->reason, sizeof(entry->reason), "the kernel does not let us stop its threads");
	else
		snprintf(entry->reason, sizeof(entry->reason),
		    "no thread was at a safe point (%" PRIu32 " looks; most were %s)", entry->tries,
		    safe_point_text(worst(search)));
}

static int run(struct search *search)
{
	pid_t pid = search->entry->space->pid;
	uint32_t refreshed = 0;
	for (;; search->round++) {
		int over = proc_each_thread(pid, try_thread, search);
		if (search->called)
			return search->error;
		if (over)
			return over < 0 ? (search->error = -ESRCH) : -EAGAIN;
		if (search->entry->tries - refreshed >= REFRESH_TRIES &&
		    address_space_refresh(search->entry->space) == 0 &&
		    maps_read_proc(search->entry->point.maps) == 0)
			refreshed = search->entry->tries;
		if (search->round >= ROUNDS_COLD)
			nanosleep(&(struct timespec){.tv_nsec = PAUSE_NS}, NULL);
	}
}

int entry_call(struct entry *entry, uint64_t function, const char *text, uint64_t argument)
{
	const struct remote_call call = {
	    .space = entry->space,
	    .code = &entry->code,
	    .function = function,
	    .text = text,
	    .argument = argument,
	};
	struct search search = {
	    .entry = entry,
	    .call = &call,
	    .thread = calloc(1, sizeof(*search.thread)),
	    .stack = malloc(STACK_BYTES),
	    .end_ns = clock_now_ns() + SEARCH_LIMIT_NS,
	};
	int error = search.thread && search.stack ? run(&search) : -ENOMEM;
	if (error)
		explain(entry, &search);
	free(search.thread);
	free(search.stack);
	return error;
}
