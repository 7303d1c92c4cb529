/* SPDX-License-Identifier: Apache-2.0 */
#include "sampler/perf/counters.h"

#include "pprof/table/array.h"
#include "pprof/text/clock.h"
#include "sampler/linux/proc.h"
#include "sampler/linux/regs.h"
#include "sampler/perf/event_attr.h"
#include "sampler/perf/features.h"
#include "sampler/perf/lineage.h"

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
	RING_BYTES_DENSE = 64 << 20, /* a burst of faults is ten times faster than our reading */
	DENSE_NS = 1000000,
	RING_BYTES_USER = 2 << 20, /* the heap's rings must fit in the same limit */
	/* CPU time: the kernel needs 10 to 30 us to create a thread, and an emulated one ten times as much */
	CREATION_NS = 500000,
	ROUND_NS = 300000, /* between two looks at threads that are not settled */
	/* Bounds the rounds: threads that end before they are settled can create new ones without end. */
	ATTACH_MAX_NS = 2000000000,
	/* A thread that was being created when the counters were enabled may have copied disabled ones. So
	 * they are enabled again after this time, and whenever a FORK record comes within so many seconds. */
	ENABLE_NS = 2000000,
	CREATION_MAX_S = 10,
};

struct counter {
	int fd;
	pid_t tid;      /* the thread that is counted */
	uint32_t event; /* EVENTS_MAX: the tracker */
	uint32_t ring;
	uint64_t id;
	uint64_t before_ns; /* running time until all counters were enabled */
};

struct counters {
	const struct event *events;
	size_t event_count;
	struct rings *rings;
	uint32_t dump_bytes;
	struct counter *list;
	size_t count, capacity;
	bool *on_ring; /* is event E counted on the processor of ring R? Index: E * rings + R */
	struct record_source *sources;
	size_t source_capacity;
	struct record_layouts layouts;
	bool incomplete; /* of a process that ran already it is unknown whether each thread is counted */
	/* while attaching to a running process */
	bool attaching, no_memory;
	struct lineage lineage;
	/* and shortly after that */
	bool forked; /* a FORK has come since counters were last enabled */
	uint64_t enable_until_ns;
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

/* Call it after every change of the list. */
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

/* Closes all counters but the first `kept`. */
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

/* On a machine with two kinds of processors, an event of the one kind is unknown on the other. */
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
	return opened ? 0 : -ENODEV; /* -ENOENT would mean that the process is gone (probe_rounds_run()) */
}

/* Opens one event, or the tracker, on one thread. */
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

/* A process that is created meanwhile may have inherited anything. It counts as created before. */
void counters_note_fork(struct counters *c, const struct record *record)
{
	const struct lineage_fork fork = {
	    .tid = (pid_t)record->tid, .parent_tid = (pid_t)record->parent_tid, .time_ns = record->time_ns};

	c->forked = true;
	if (c->attaching && record->pid == record->parent_pid && lineage_fork(&c->lineage, &fork) != 0)
		c->no_memory = true;
}

struct attaching {
	struct counters *counters;
	size_t first;     /* this process' first counter */
	pid_t *strangers; /* threads whose counters were closed in this round */
	size_t stranger_count, stranger_capacity;
	size_t found; /* new threads and strangers of this round */
};

static int note_stranger(struct attaching *a, pid_t tid)
{
	if (array_reserve(
	        &a->strangers, &a->stranger_capacity, a->stranger_count + 1, sizeof(*a->strangers)) != 0)
		return -ENOMEM;
	a->strangers[a->stranger_count++] = tid;
	return 0;
}

static int attach_thread(void *context, pid_t tid)
{
	struct attaching *a = context;
	struct counters *c = a->counters;

	if (lineage_knows(&c->lineage, tid))
		return 0;
	size_t before = c->count;
	int error = open_on(c, EVENTS_MAX, tid, false);
	for (uint32_t i = 0; i < c->event_count && !error; i++)
		error = open_on(c, i, tid, false);
	a->found++; /* also if the thread has ended: it may have created another */
	if (!error)
		return lineage_add(&c->lineage, tid);
	drop_from(c, before);
	if (error != -ESRCH)
		return error;
	error = lineage_end(&c->lineage, tid);
	return error ? error : note_stranger(a, tid);
}

/* Closes the counters that we put on a thread. That also closes the counters that were inherited from
 * them. */
static void drop_thread(struct attaching *a, pid_t tid)
{
	struct counters *c = a->counters;
	size_t kept = a->first;

	for (size_t i = a->first; i < c->count; i++) {
		if (c->list[i].tid == tid)
			close(c->list[i].fd);
		else
			c->list[kept++] = c->list[i];
	}
	c->count = kept;
}

/* How long a thread and what it created have run since its trackers were opened. */
static uint64_t ran_ns(const struct attaching *a, pid_t tid)
{
	const struct counters *c = a->counters;
	uint64_t words[5], sum = 0; /* see counters_read() */

	for (size_t i = a->first; i < c->count; i++)
		if (c->list[i].tid == tid && c->list[i].event == EVENTS_MAX &&
		    read(c->list[i].fd, words, sizeof(words)) >= 32)
			sum += words[2];
	return sum;
}

/*
 * A sleeping thread is not creating another thread: creation has no wait that a signal could end. A thread
 * that has run for longer than a creation takes has finished the creation that it was at, and its own
 * creation was reported before it ran at all. On a busy machine both take long, because the thread waits for
 * a CPU.
 */
static void settle(struct attaching *a)
{
	struct lineage *lineage = &a->counters->lineage;
	size_t at = 0;
	pid_t tid;

	while ((tid = lineage_unsettled(lineage, &at)))
		if (!strchr("RD", proc_state(tid)) || ran_ns(a, tid) >= CREATION_NS)
			lineage_settle(lineage, tid, clock_now_ns());
}

/* Closes the counters of creators for whose new threads it is unknown what they inherited. The next round
 * finds these threads again. Until the counters are closed, their records may get into the rings. */
static int drop_doubtful(struct attaching *a, void (*drain)(void *context), void *context)
{
	struct lineage *lineage = &a->counters->lineage;
	int error = 0;
	pid_t tid;

	while (!error && (tid = lineage_doubtful(lineage))) {
		drop_thread(a, tid);
		lineage_forget(lineage, tid);
		error = note_stranger(a, tid);
	}
	if (a->stranger_count == 0)
		return error;
	drain(context);
	for (size_t i = 0; i < a->stranger_count; i++)
		lineage_forget(lineage, a->strangers[i]);
	a->found += a->stranger_count;
	a->stranger_count = 0;
	return error;
}

/* One round. Returns 1 if nothing is left to do, 0 if something is, or -errno. */
static int attach_round(struct attaching *a, pid_t pid, void (*drain)(void *context), void *context)
{
	const struct timespec pause = {.tv_nsec = ROUND_NS};
	struct lineage *lineage = &a->counters->lineage;

	a->found = 0;
	int error = proc_each_thread(pid, attach_thread, a);
	if (error)
		return error == -ENOENT ? -ESRCH : error;
	nanosleep(&pause, NULL);
	settle(a);
	drain(context);
	error = drop_doubtful(a, drain, context);
	if (error)
		return error;
	pid_t tid;
	while ((tid = lineage_take_double(lineage)))
		drop_thread(a, tid);
	size_t at = 0;
	return a->found == 0 && !lineage_unsettled(lineage, &at);
}

static void enable(struct counters *c)
{
	c->forked = false;
	for (size_t i = 0; i < c->count; i++)
		if (c->list[i].event != EVENTS_MAX)
			ioctl(c->list[i].fd, PERF_EVENT_IOC_ENABLE, 0); /* and its inherited copies */
}

void counters_tend(struct counters *c)
{
	if (c->forked && clock_now_ns() < c->enable_until_ns)
		enable(c);
}

/* Trackers count since they were opened, long before the events. So shares of time are taken from here on.
 * Here an event is read before its thread's tracker, and in counters_read() after it. So its share comes out
 * a moment too large and never too small, and no event looks multiplexed that is not. */
static void note_start(struct counters *c, size_t first)
{
	uint64_t words[5]; /* see counters_read() */

	for (size_t i = c->count; i-- > first;)
		if (read(c->list[i].fd, words, sizeof(words)) >= 32)
			c->list[i].before_ns = words[2];
}

static int attach_all(struct attaching *a, pid_t pid, void (*drain)(void *context), void *context)
{
	struct counters *c = a->counters;
	uint64_t deadline_ns = clock_now_ns() + ATTACH_MAX_NS;

	/* Twice: while threads are ending, the kernel's list of threads may lack others. */
	for (int quiet = 0; quiet < 2;) {
		int result = attach_round(a, pid, drain, context);

		if (result < 0 || c->no_memory)
			return result < 0 ? result : -ENOMEM;
		quiet = result ? quiet + 1 : 0;
		if (clock_now_ns() >= deadline_ns) {
			c->incomplete = true;
			break;
		}
	}
	return c->count > a->first ? index_sources(c) : -ESRCH;
}

int counters_attach_running(struct counters *c, pid_t pid, void (*drain)(void *context), void *context)
{
	struct attaching attaching = {.counters = c, .first = c->count};

	c->attaching = true;
	int error = attach_all(&attaching, pid, drain, context);
	if (!error) {
		const struct timespec pause = {.tv_nsec = ENABLE_NS};

		c->enable_until_ns = clock_now_ns() + (uint64_t)CREATION_MAX_S * CLOCK_NS_PER_S;
		enable(c);
		nanosleep(&pause, NULL);
		drain(context);
		counters_tend(c);
		note_start(c, attaching.first);
	}
	c->attaching = c->no_memory = false;
	if (error)
		drop_from(c, attaching.first);
	free(attaching.strangers);
	lineage_free(&c->lineage);
	return error;
}

/* ---- all of it */

/* Does the event make thousands of samples a second, or does the program determine its rate? */
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
	c->dump_bytes = ring_dump_bytes(stack_bytes);
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
	totals->incomplete = c->incomplete;
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
