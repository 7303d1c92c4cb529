/* SPDX-License-Identifier: Apache-2.0 */
#include "sampler/inject/entry.h"

#include "pprof/text/clock.h"
#include "sampler/inject/tracer.h"
#include "sampler/linux/proc.h"

#include <errno.h>
#include <inttypes.h>
#include <poll.h>
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
	ROUNDS_COLD = 1, /* in the first round, no thread stands still while we read new code */
	PAUSE_NS = 300 * 1000,
	LOOKS_LEAST = 256,  /* even if we get so little CPU time that they take longer than the limit */
	REFRESH_TRIES = 64, /* then the mappings are read again: threads come and go */
	GONE_TRIES = 64,    /* all of them in a file that is gone: more would not help */
};
#define SEARCH_LIMIT_NS (UINT64_C(10) * 1000000000)
#define SEARCH_MOST_NS  (UINT64_C(60) * 1000000000)

/* A search for a thread: looks at all threads again and again. */
struct search {
	struct entry *entry;
	const struct remote_call *call;
	struct tracer *tracer;
	unsigned char *stack;
	uint64_t end_ns;
	uint32_t round;
	bool any_willing; /* some thread is in no system call that a stop would end */
	int error;
	bool called;
	uint32_t filtered; /* number of looks at threads with a seccomp filter */
	uint32_t verdicts[SAFE_POINT_VERDICTS];
	uint32_t unfit; /* of the safe ones: not called, for a system call could end the process */
	bool outdated;  /* a stack was in none of the mappings */
};

int entry_open(struct entry *entry, struct address_space *space, struct modules *modules)
{
	*entry = (struct entry){.cancel_fd = entry->cancel_fd, .force = entry->force, .space = space};
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

struct condition {
	bool stops;    /* it can stop: it has not ended, and is in no uninterruptible wait */
	bool filtered; /* a seccomp filter is in force */
	bool traced;   /* by another process, which may be about to end */
};

/* Of a thread of the process. A thread of another process, which has the number by now, does not stop. */
static struct condition condition_of(pid_t pid, pid_t tid)
{
	char status[PROC_STATUS_BYTES], name[64];

	snprintf(name, sizeof(name), "task/%d/status", (int)tid);
	ssize_t length = proc_read(pid, name, status, sizeof(status));
	const char *state = length > 0 ? strstr(status, "\nState:\t") : NULL;
	/* else the line may be missing, behind those of many groups */
	bool whole = length < (ssize_t)sizeof(status) - 1;

	return (struct condition){
	    .stops = state && !strchr("DZX", state[8]),
	    .filtered = proc_status_number(status, "\nSeccomp:", 10, !whole) != 0,
	    .traced = proc_status_number(status, "\nTracerPid:", 10, 0) != 0,
	};
}

/* Does a socket of the process have a time limit? Calls that wait for such a socket end with EINTR at a stop.
 * True if the socket cannot be asked (pidfd_getfd needs Linux 5.6). */
static bool has_time_limit(pid_t pid, int fd)
{
	static const int names[] = {SO_RCVTIMEO, SO_SNDTIMEO};
	int pid_fd = (int)syscall(SYS_pidfd_open, pid, 0);
	int copy = pid_fd < 0 ? -1 : (int)syscall(SYS_pidfd_getfd, pid_fd, fd, 0);
	bool limited = copy < 0 && errno != EBADF;

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

/* Looks at the state of the thread. False if it would not stop now, or if its system call would end. */
static bool is_willing(pid_t pid, pid_t tid, bool *ends)
{
	char text[256];
	long number;
	uint64_t arguments[6] = {0};

	*ends = false;
	if (proc_read(tid, "syscall", text, sizeof(text)) <= 0)
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

static bool is_late(const struct search *search)
{
	uint64_t now_ns = clock_now_ns();

	return now_ns >= search->end_ns + (SEARCH_MOST_NS - SEARCH_LIMIT_NS) ||
	    (now_ns >= search->end_ns && (!search->entry->tries || search->entry->tries >= LOOKS_LEAST));
}

/* Were all threads, at each look, in a file that is gone? */
static bool is_hopeless(const struct search *search)
{
	return search->entry->tries >= GONE_TRIES &&
	    search->verdicts[SAFE_POINT_GONE] == search->entry->tries;
}

static bool is_canceled(struct search *search)
{
	struct pollfd cancel = {.fd = search->entry->cancel_fd, .events = POLLIN};

	if (poll(&cancel, 1, 0) > 0)
		search->error = -ECANCELED;
	return search->error == -ECANCELED;
}

/* Is the thread worth a stop? */
static bool is_candidate(struct search *search, pid_t tid)
{
	struct condition condition = condition_of(search->entry->space->pid, tid);
	bool ends = false;

	if (condition.filtered && !search->entry->force)
		search->filtered++;
	bool willing = condition.stops && (!condition.filtered || search->entry->force) &&
	    is_willing(search->entry->space->pid, tid, &ends);
	search->any_willing = search->any_willing || (willing && !ends);
	return willing && !(ends && (search->any_willing || search->round < ROUNDS_COLD + 2));
}

/* Returns 1 when the search is over. */
static int failed_to_stop(struct search *search, pid_t tid, int error)
{
	struct condition condition = condition_of(search->entry->space->pid, tid);
	/* else the thread was about to end */
	bool forbidden = error == -EPERM && condition.stops && !condition.traced;
	const bool final = forbidden || error == -ECANCELED || error == -ENOMEM;

	search->error = final ? error : -EAGAIN;
	return final || is_late(search);
}

/* Copies the stack from the stack pointer on. */
static size_t copy_stack(struct search *search)
{
	const struct address_space *space = search->entry->space;
	const uint64_t at = stopped_thread_stack_pointer(&search->tracer->thread);
	const struct mapping *mapping = address_space_find(space, at);
	uint64_t want = mapping ? mapping->end - at : 0;

	search->outdated = search->outdated || !mapping;
	return address_space_read_some(space, at, search->stack, want < STACK_BYTES ? want : STACK_BYTES);
}

/* Would its system calls become signals, as wine has it for code of Windows? */
static bool is_dispatched(const struct search *search)
{
	const uint64_t at = search->tracer->thread.dispatch;
	unsigned char selector = 0;

	return at && (address_space_read(search->entry->space, at, &selector, 1) != 0 || selector != 0);
}

/* Asked while the thread stands still: it may have installed a filter since it was chosen. */
static bool may_be_called(const struct search *search)
{
	const struct entry *entry = search->entry;
	const struct condition condition = condition_of(entry->space->pid, search->tracer->thread.tid);

	return condition.stops && (!condition.filtered || entry->force) && !is_dispatched(search);
}

/* For a thread that a tracer has stopped. Returns the result of tracer_end. */
static int look(struct search *search)
{
	struct tracer *tracer = search->tracer;
	const bool cold = search->round < ROUNDS_COLD;
	const size_t bytes = copy_stack(search);

	if (cold)
		(void)tracer_end(tracer, NULL);
	const enum safe_point_verdict verdict =
	    safe_point_check(&search->entry->point, &tracer->thread, search->stack, bytes);
	search->verdicts[verdict]++;
	if (cold)
		return -EAGAIN;
	const bool safe = verdict == SAFE_POINT_SAFE, fit = safe && may_be_called(search);
	search->unfit += safe && !fit;
	return tracer_end(tracer, fit ? search->call : NULL);
}

/* Returns 1 when the search is over. */
static int try_thread(void *context, pid_t tid)
{
	struct search *search = context;
	struct entry *entry = search->entry;

	if (is_canceled(search))
		return 1;
	if (!is_candidate(search, tid))
		return is_late(search);
	int error = tracer_stop(search->tracer, tid);
	if (error)
		return failed_to_stop(search, tid, error);
	entry->tries++;
	search->error = look(search);
	search->called = search->error != -EAGAIN;
	if (search->called)
		entry->stood_ns = clock_now_ns() - search->tracer->thread.since_ns;
	return search->called || is_late(search) || is_hopeless(search);
}

/* The most frequent verdict. */
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
	if (search->error == -ENOMEM)
		snprintf(entry->reason, sizeof(entry->reason),
		    "heaptap has no memory left, or may have no more processes");
	else if (search->error == -ECANCELED && search->called)
		snprintf(entry->reason, sizeof(entry->reason),
		    "given up while its thread %d was in the call; it goes on by itself, and records nothing",
		    (int)search->tracer->thread.tid);
	else if (search->error == -ECANCELED)
		snprintf(entry->reason, sizeof(entry->reason),
		    "given up before a thread was at a safe point (%" PRIu32 " tries)", entry->tries);
	else if (search->error == -ETIMEDOUT)
		snprintf(entry->reason, sizeof(entry->reason),
		    "the call in its thread %d has not returned in 30 s; it goes on by itself, and records "
		    "nothing",
		    (int)search->tracer->thread.tid);
	else if (search->called || search->error == -ESRCH)
		snprintf(entry->reason, sizeof(entry->reason), "it ended, or executed another program");
	else if (search->error == -EPERM)
		snprintf(entry->reason, sizeof(entry->reason), "the kernel does not let us stop its threads");
	else if (!entry->tries)
		snprintf(entry->reason, sizeof(entry->reason),
		    "none of its threads can be stopped: each %swaits for what cannot be interrupted, or is "
		    "traced by another process",
		    search->filtered ? "has a seccomp filter, " : "");
	else if (search->unfit > search->verdicts[worst(search)])
		snprintf(entry->reason, sizeof(entry->reason),
		    "each thread at a safe point had a seccomp filter, or its system calls became signals "
		    "(%" PRIu32 " looks)",
		    entry->tries);
	else if (worst(search) == SAFE_POINT_GONE)
		snprintf(entry->reason, sizeof(entry->reason),
		    "its threads are in %s: that file was replaced, removed or hidden, and too little of it "
		    "can be read",
		    entry->point.gone);
	else
		snprintf(entry->reason, sizeof(entry->reason),
		    "no thread was at a safe point (%" PRIu32 " looks; most were %s)", entry->tries,
		    safe_point_text(worst(search)));
}

/* To read the maps again is to copy again what is read of files that are gone, and that is done so many times
 * only (MAPS_COPIES_MAX). */
static int refresh(struct search *search)
{
	struct maps *maps = search->entry->point.maps;
	const int error = address_space_refresh(search->entry->space);

	return error || maps_are_current(maps) ? error : maps_read_proc(maps);
}

static int run(struct search *search)
{
	const struct timespec pause = {.tv_nsec = PAUSE_NS};
	struct pollfd cancel = {.fd = search->entry->cancel_fd, .events = POLLIN};
	pid_t pid = search->entry->space->pid;
	uint32_t refreshed = 0;

	for (;; search->round++) {
		int over = proc_each_thread(pid, try_thread, search);

		if (search->called || search->error == -ECANCELED)
			return search->error;
		if (over)
			return over < 0 ? (search->error = -ESRCH) : -EAGAIN;
		if ((search->outdated || search->entry->tries - refreshed >= REFRESH_TRIES) &&
		    refresh(search) == 0) {
			refreshed = search->entry->tries;
			search->outdated = false;
		}
		if (search->round >= ROUNDS_COLD)
			ppoll(&cancel, 1, &pause, NULL);
	}
}

int entry_call(struct entry *entry, const struct remote_call *wish)
{
	struct remote_call call = *wish;

	call.space = entry->space;
	call.code = &entry->code;
	struct search search = {
	    .entry = entry,
	    .call = &call,
	    .tracer = tracer_new(entry->cancel_fd),
	    .stack = malloc(STACK_BYTES),
	    .end_ns = clock_now_ns() + SEARCH_LIMIT_NS,
	};
	entry->stood_ns = entry->tries = 0;
	int error = search.tracer && search.stack ? run(&search) : (search.error = -ENOMEM);
	if (error)
		explain(entry, &search);
	tracer_free(search.tracer);
	free(search.stack);
	return error;
}
