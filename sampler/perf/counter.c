/* SPDX-License-Identifier: Apache-2.0 */
#include "sampler/perf/counter.h"

#include "pprof/table/array.h"
#include "sampler/arch/regs.h"
#include "sampler/linux/clock.h"
#include "sampler/perf/attach.h"
#include "sampler/perf/event_attr.h"
#include "sampler/perf/features.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

enum {
	RING_BYTES_ROOT = 16 << 20,
	RING_BYTES_DENSE = 64 << 20, /* a burst of faults is ten times faster than we can read */
	DENSE_NS = 1000000,
	RING_BYTES_USER = 2 << 20, /* the heap's rings must fit under the same limit */
	ATTACH_ROUNDS = 16,
	ATTACH_TRIES = 8,
	/* record sizes are 16 bits wide; the rest is for the kernel's call chain */
	DUMP_BYTES_MAX = 64000,
	/* longest time from the listing of a thread to its FORK record, which the kernel writes next */
	SETTLE_NS = 2 * 1000000,
};

struct counter {
	int fd;
	pid_t tid;      /* of the thread that it counts */
	uint32_t event; /* EVENTS_MAX: the tracker */
	uint32_t ring;
	uint64_t id;
	uint64_t before_ns; /* its running time until all were enabled */
};

struct fork_seen {
	pid_t tid, parent_tid;
	uint64_t time_ns;
};

struct thread {
	pid_t tid;
	uint64_t complete_ns; /* when the last of its counters was open */
};

struct counters {
	const struct event *events;
	size_t event_count;
	struct rings *rings;
	uint32_t dump_bytes;
	struct counter *list;
	size_t count, capacity;
	bool *on_ring; /* is event E counted on the processor of ring R? By E * rings + R */
	struct record_source *sources;
	size_t source_capacity;
	struct record_layouts layouts;
	/* while a running process is attached to */
	bool attaching;
	struct fork_seen *forks;
	size_t fork_count, fork_capacity;
	struct thread *threads; /* that counters were put on */
	size_t thread_count, thread_capacity;
};

/* ---- the list */

static int open_event(const struct perf_event_attr *attr, pid_t pid, int cpu)
{
	int fd = (int)syscall(SYS_perf_event_open, attr, pid, cpu, -1, PERF_FLAG_FD_CLOEXEC);
	return fd < 0 ? -errno : fd;
}

static int by_id(const void *left, const void *right)
{
	const struct record_source *a = left, *b = right;
	return a->id < b->id ? -1 : a->id > b->id;
}

/* To be called after every change of the list. */
static int index_sources(struct counters *c)
{
	if (array_reserve(&c->sources, &c->source_capacity, c->count + 1, sizeof(*c->sources)) != 0)
		return -ENOMEM;
	struct record_source *sources = c->sources;
	for (size_t i = 0; i < c->count; i++) {
		struct perf_event_attr attr;
		uint32_t event = c->list[i].event;
		if (event == EVENTS_MAX)
			event_attr_tracker(&attr);
		else
			event_attr_part(&attr, &c->events[event], 0, c->dump_bytes);
		sources[i] = (struct record_source){
		    .id = c->list[i].id, .sample_type = attr.sample_type, .event = event};
	}
	qsort(sources, c->count, sizeof(*sources), by_id);
	c->layouts = (struct record_layouts){
	    .regs_mask = regs_arch_native()->perf_mask, .sources = sources, .count = c->count};
	return 0;
}

static int open_counter(
    struct counters *c, const struct perf_event_attr *attr, pid_t tid, size_t ring, uint32_t event)
{
	if (array_reserve(&c->list, &c->capacity, c->count + 1, sizeof(*c->list)) != 0)
		return -ENOMEM;
	struct counter counter = {.fd = open_event(attr, tid, rings_cpu(c->rings, ring)),
	    .tid = tid,
	    .event = event,
	    .ring = (uint32_t)ring};
	if (counter.fd < 0)
		return counter.fd;
	if (ioctl(counter.fd, PERF_EVENT_IOC_SET_OUTPUT, rings_fd(c->rings, ring)) != 0 ||
	    ioctl(counter.fd, PERF_EVENT_IOC_ID, &counter.id) != 0) {
		int error = -errno;
		close(counter.fd);
		return error;
	}
	c->list[c->count++] = counter;
	return 0;
}

/* Closes all but the first `kept`. */
static void drop_from(struct counters *c, size_t kept)
{
	while (c->count > kept)
		close(c->list[--c->count].fd);
}

static int open_on_all(struct counters *c, const struct perf_event_attr *tracker, pid_t tid)
{
	int error = 0;
	for (size_t i = 0; i < rings_count(c->rings) && !error; i++)
		error = open_counter(c, tracker, tid, i, EVENTS_MAX);
	return error;
}

/* Where there are two kinds of processors, an event of one kind is unknown to the others. */
static int open_where_known(struct counters *c, const struct perf_event_attr *attr, pid_t tid, uint32_t event)
{
	int only_cpu = c->events[event].cpu;
	size_t rings = rings_count(c->rings), opened = 0;
	for (size_t i = 0; i < rings; i++) {
		if (only_cpu >= 0 && only_cpu != rings_cpu(c->rings, i))
			continue;
		int error = open_counter(c, attr, tid, i, event);
		if (error && error != -ENOENT)
			return error;
		opened += !error;
		c->on_ring[event * rings + i] = !error;
	}
	return opened ? 0 : -ENODEV; /* -ENOENT would be a process that is gone (attach.h) */
}

/* One event, or the tracker, on one thread. */
static int open_on(struct counters *c, uint32_t event, pid_t tid, bool on_exec)
{
	uint32_t parts = event == EVENTS_MAX ? 1 : c->events[event].parts;
	for (uint32_t part = 0; part < parts; part++) {
		struct perf_event_attr attr;
		if (event == EVENTS_MAX)
			event_attr_tracker(&attr);
		else
			event_attr_part(&attr, &c->events[event], part, c->dump_bytes);
		attr.enable_on_exec = on_exec;
		attr.disabled = on_exec || event != EVENTS_MAX;
		int error =
		    event == EVENTS_MAX ? open_on_all(c, &attr, tid) : open_where_known(c, &attr, tid, event);
		if (error)
			return error;
	}
	return 0;
}

int counters_attach_waiting(struct counters *c, pid_t pid)
{
	size_t before = c->count;
	int error = open_on(c, EVENTS_MAX, pid, true);
	for (uint32_t i = 0; i < c->event_count && !error; i++)
		error = open_on(c, i, pid, true);
	if (!error)
		error = index_sources(c);
	if (error)
		drop_from(c, before);
	return error;
}

/* ---- a running process */

void counters_note_fork(struct counters *c, const struct record *record)
{
	if (!c->attaching ||
	    array_reserve(&c->forks, &c->fork_capacity, c->fork_count + 1, sizeof(*c->forks)) != 0)
		return;
	c->forks[c->fork_count++] =
	    (struct fork_seen){(pid_t)record->tid, (pid_t)record->parent_tid, record->time_ns};
}

static const struct thread *find_thread(const struct counters *c, pid_t tid)
{
	for (size_t i = 0; i < c->thread_count; i++)
		if (c->threads[i].tid == tid)
			return &c->threads[i];
	return NULL;
}

static bool inherited(const struct counters *c, pid_t tid)
{
	for (size_t i = 0; i < c->fork_count; i++)
		if (c->forks[i].tid == tid)
			return true;
	return false;
}

struct attaching {
	struct counters *counters;
	void (*drain)(void *context);
	void *context;
};

static int attach_thread(void *context, pid_t tid)
{
	struct counters *c = ((const struct attaching *)context)->counters;
	if (inherited(c, tid))
		return ATTACH_SKIP;
	if (array_reserve(&c->threads, &c->thread_capacity, c->thread_count + 1, sizeof(*c->threads)) != 0)
		return -ENOMEM;
	size_t before = c->count;
	int error = open_on(c, EVENTS_MAX, tid, false);
	for (uint32_t i = 0; i < c->event_count && !error; i++)
		error = open_on(c, i, tid, false);
	if (error)
		drop_from(c, before);
	else
		c->threads[c->thread_count++] = (struct thread){tid, clock_now_ns()};
	return error;
}

/* Reads the FORK records of threads that were created meanwhile. */
static int round_done(void *context)
{
	const struct attaching *attaching = context;
	const struct timespec pause = {.tv_nsec = SETTLE_NS};
	int error = index_sources(attaching->counters);
	nanosleep(&pause, NULL);
	attaching->drain(attaching->context);
	return error;
}

/* A thread was in /proc/PID/task and had also inherited counters from its creator: drops the ones that we
 * opened, or each event would be counted twice. */
static void drop_doubles(struct counters *c)
{
	size_t kept = 0;
	for (size_t i = 0; i < c->count; i++) {
		if (inherited(c, c->list[i].tid))
			close(c->list[i].fd);
		else
			c->list[kept++] = c->list[i];
	}
	c->count = kept;
}

/* Was a thread created while its creator's counters were being opened? Then it is unknown which of them it
 * has inherited. */
static bool in_doubt(const struct counters *c)
{
	for (size_t i = 0; i < c->fork_count; i++) {
		const struct thread *creator = find_thread(c, c->forks[i].parent_tid);
		if (creator && !inherited(c, creator->tid) &&
		    c->forks[i].time_ns < creator->complete_ns + SETTLE_NS)
			return true;
	}
	return false;
}

static void enable(const struct counters *c)
{
	for (size_t i = 0; i < c->count; i++)
		if (c->list[i].event != EVENTS_MAX)
			ioctl(c->list[i].fd, PERF_EVENT_IOC_ENABLE, 0); /* and its inherited copies */
}

/* Trackers have been counting since they were opened, long before the events: shares of time are taken from
 * here on. An event is read before its thread's tracker, and after it in counters_read(): its share comes out
 * too large by that moment, never too small, so that nothing is taken for multiplexed that is not. */
static void note_start(struct counters *c)
{
	uint64_t words[5]; /* as in counters_read() */

	for (size_t i = c->count; i-- > 0;)
		if (read(c->list[i].fd, words, sizeof(words)) >= 32)
			c->list[i].before_ns = words[2];
}

/* Returns 0, 1 in doubt, or -errno. */
static int attach_once(struct counters *c, pid_t pid, void (*drain)(void *context), void *context)
{
	struct attaching attaching = {.counters = c, .drain = drain, .context = context};
	const struct attach attach = {
	    .pid = pid,
	    .rounds_max = ATTACH_ROUNDS,
	    .quiet_rounds = 2, /* with a pause between them: a FORK record may arrive later than the thread */
	    .thread = attach_thread,
	    .round_done = round_done,
	    .context = &attaching,
	};
	c->fork_count = c->thread_count = 0;
	ssize_t reached = attach_threads(&attach);
	if (reached <= 0)
		return reached < 0 ? (int)reached : -ESRCH;
	return in_doubt(c) ? 1 : 0;
}

int counters_attach_running(struct counters *c, pid_t pid, void (*drain)(void *context), void *context)
{
	int result = 1;
	c->attaching = true;
	for (int i = 0; i < ATTACH_TRIES && result == 1; i++) {
		drop_from(c, 0);
		result = attach_once(c, pid, drain, context);
	}
	if (result >= 0) {
		drop_doubles(c);
		result = index_sources(c);
	}
	if (result >= 0) {
		/* Twice: a thread that is being created just then may have copied its creator's state before.
		 * */
		const struct timespec pause = {.tv_nsec = SETTLE_NS};
		enable(c);
		nanosleep(&pause, NULL);
		enable(c);
		note_start(c);
	}
	c->attaching = false;
	if (result < 0)
		drop_from(c, 0);
	return result;
}

/* ---- all of it */

/* Thousands of samples a second, or a rate that the program determines? */
static bool is_dense(const struct event *event)
{
	return event->kind == EVENT_CLOCK ? event->period < DENSE_NS
	                                  : event->hz > 1000 || (!event->hz && event->period < 100);
}

struct counters *counters_open(const struct event *events, size_t count, uint32_t stack_bytes, int *error)
{
	struct counters *c = calloc(1, sizeof(*c));
	if (!c) {
		*error = -ENOMEM;
		return NULL;
	}
	c->events = events;
	c->event_count = count;
	c->dump_bytes = (stack_bytes > DUMP_BYTES_MAX ? DUMP_BYTES_MAX : stack_bytes) & ~7u;
	size_t ring_bytes = geteuid() == 0 ? RING_BYTES_ROOT : RING_BYTES_USER;
	for (size_t i = 0; i < count; i++)
		if (geteuid() == 0 && is_dense(&events[i]))
			ring_bytes = RING_BYTES_DENSE;
	c->rings = rings_open(ring_bytes, error);
	if (!c->rings)
		goto fail;
	c->on_ring = calloc(count * rings_count(c->rings) + 1, sizeof(*c->on_ring));
	*error = c->on_ring ? index_sources(c) : -ENOMEM;
	if (!*error)
		return c;
fail:
	counters_close(c);
	return NULL;
}

void counters_close(struct counters *c)
{
	if (!c)
		return;
	drop_from(c, 0);
	rings_close(c->rings);
	free(c->list);
	free(c->on_ring);
	free(c->sources);
	free(c->forks);
	free(c->threads);
	free(c);
}

struct rings *counters_rings(struct counters *c)
{
	return c->rings;
}

const struct record_layouts *counters_layouts(const struct counters *c)
{
	return &c->layouts;
}

void counters_read(const struct counters *c, size_t event, struct counter_totals *totals)
{
	const size_t rings = rings_count(c->rings);
	const bool *on_ring = &c->on_ring[event * rings];

	memset(totals, 0, sizeof(*totals));
	totals->lost_known = features_has(FEATURES_LOST);
	for (size_t i = 0; i < c->count; i++) {
		uint64_t words[5] = {0}; /* value, enabled, running, id, lost */
		const struct counter *counter = &c->list[i];
		bool is_tracker = counter->event == EVENTS_MAX;
		if ((counter->event != event && !is_tracker) || (is_tracker && !on_ring[counter->ring]) ||
		    read(counter->fd, words, sizeof(words)) < 32)
			continue;
		if (is_tracker) {
			totals->enabled_ns += words[2] - counter->before_ns;
			continue;
		}
		totals->counted += words[0];
		totals->running_ns += words[2] - counter->before_ns;
		totals->lost += totals->lost_known ? words[4] : 0;
	}
	totals->running_ns /= c->events[event].parts;
	totals->cpus = (uint32_t)rings;
	for (size_t i = 0; i < rings; i++)
		totals->cpus_counted += on_ring[i];
}
