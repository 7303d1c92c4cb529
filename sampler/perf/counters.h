/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Counters: the kernel's side of the events that a user names, on the tasks they are put on.
 *
 *   per thread and CPU   a tracker (a dummy that reports mappings, forks, execs and exits) and each part of
 *                        each event, all inherited by what the thread creates; inherited events have rings
 *                        only per CPU
 *   COMMAND              disabled, enable_on_exec: what happens before COMMAND's exec is not counted
 *   a running process    on each thread the tracker, enabled at once, then the rest, disabled; when every
 *                        thread has them, all are enabled. A thread created meanwhile may have inherited its
 *                        creator's counters and also be in the list of threads: ours on it are closed again.
 *                        Or it was created while its creator's counters were being opened: these are closed,
 *                        and both are strangers again (lineage.h).
 *
 * Multiplexing: the share of the time in which an event was actually counted. The tracker is a software event
 * and always counted, so its running time is the time that tasks ran: from when all events were enabled, and
 * on the processors on which the event is open.
 */
#ifndef SAMPLER_PERF_COUNTERS_H
#define SAMPLER_PERF_COUNTERS_H

#include "sampler/perf/event.h"
#include "sampler/perf/ring.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct counters;

struct counter_totals {
	uint64_t counted; /* by the kernel, of all tasks; events, or ns of a clock */
	uint64_t lost;    /* samples lost because a ring was full */
	bool lost_known;  /* the kernel says how many (Linux 6.0) */
	uint64_t enabled_ns, running_ns;
	uint32_t cpus, cpus_counted; /* online, and those where the event is open */
	bool incomplete; /* it is unknown whether each thread of a process that ran already is counted */
};

/* Borrows the events. stack_bytes: the most bytes of the stack in a sample. NULL with *error = -errno. */
struct counters *counters_open(const struct event *events, size_t count, uint32_t stack_bytes, int *error);
void counters_close(struct counters *counters);

struct rings *counters_rings(struct counters *counters);

/* The layouts of the records in the rings. `event` of a source is the event's number, or EVENTS_MAX for a
 * tracker. Valid until the next attach. */
const struct record_layouts *counters_layouts(const struct counters *counters);

/* Attaches to a process that has one thread and waits before its exec. Returns 0 or -errno (nothing stays
 * open). */
int counters_attach_waiting(struct counters *counters, pid_t pid);

/* Attaches to every thread of a running process. `drain` is called between the rounds: it must drain the
 * rings, and pass each FORK record to counters_note_fork. Returns 0 or -errno (nothing stays open). */
int counters_attach_running(
    struct counters *counters, pid_t pid, void (*drain)(void *context), void *context);
void counters_note_fork(struct counters *counters, const struct record *record);

/* Call it whenever the rings were drained. A thread whose creation was under way when the counters were
 * enabled may have copied its creator's counters before that. Its own counters are enabled when its FORK
 * record is seen. */
void counters_tend(struct counters *counters);

void counters_read(const struct counters *counters, size_t event, struct counter_totals *totals);

#endif
