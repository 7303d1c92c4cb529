/* SPDX-License-Identifier: Apache-2.0 */
/*
 * From the records in the counters' rings to the books of subjects.
 *
 * A sample has its stack in two pieces: the kernel's side as the kernel's own call chain, the user's as
 * registers and a copy of the stack, to be unwound as the heap's samples are.
 */
#ifndef SAMPLER_BOOKS_EVENT_INTAKE_H
#define SAMPLER_BOOKS_EVENT_INTAKE_H

#include "sampler/books/event_process.h"
#include "sampler/perf/counters.h"

struct event_intake {
	/* borrowed */
	const struct event *events;
	size_t event_count;
	struct counters *counters;
	bool by_thread;
	/* first_sample: called with the first sample of a process. replaced: called when another program
	 * begins under its pid; closes the process. */
	void (*first_sample)(void *context, struct event_process *process);
	void (*replaced)(void *context, struct event_process *process, enum target_end end);
	void *context;

	struct event_processes subjects;
	struct unwind_frame *frames;
	uint64_t taken, bad, ring_lost;
	uint64_t sampled; /* subjects with at least one sample */
	uint64_t throttled[EVENTS_MAX];
	struct event_row sum[EVENTS_MAX]; /* of all subjects so far */
};

/* To be called once the borrowed fields and subjects.modules are set. Returns 0 or -ENOMEM. */
int event_intake_init(struct event_intake *intake);
void event_intake_fini(struct event_intake *intake);

/* Reads the rings. Leaves records that are so young that an older one may still arrive; with `everything`
 * reads these too. Returns the number of samples. */
size_t event_intake_drain(struct event_intake *intake, bool everything);

#endif
