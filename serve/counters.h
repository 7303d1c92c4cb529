/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What services and samplers have counted: for /metrics, where a counter must never fall.
 *
 * A list says of each process what it has had since it is profiled, and nothing of those that have ended. So
 * a sum here grows by what a process has more than it had at the last look, and keeps it. A process is
 * remembered for a while after it was last seen, because a sampler that does not answer once is no end; a
 * service is forgotten with the last process that it had.
 */
#ifndef SERVE_COUNTERS_H
#define SERVE_COUNTERS_H

#include "sampler/control/control_list.h"

enum { COUNTERS_PROCESSES_MAX = 20000, COUNTERS_SAMPLERS_MAX = 1024, COUNTERS_CAUSE_BYTES = 64 };

#define COUNTERS_REMEMBERED_NS (UINT64_C(600) * 1000000000)

struct counters_loss {
	char cause[COUNTERS_CAUSE_BYTES];
	uint64_t count;
};

struct counters_sum {
	double alloc_bytes;
	bool alloc_known;
	uint64_t samples;
	struct counters_loss *losses;
	size_t loss_count, loss_room;
};

struct counters;

struct counters *counters_new(void); /* NULL: no memory */
void counters_free(struct counters *counters);

/* What a list says of a process that is profiled, and of the sampler that wrote it. A process that there is
 * no room or memory for is not counted; half of the room is for foreign ones. now_ns:
 * monotonic. */
void counters_note(struct counters *counters, const char *service, const struct control_process *listed,
    bool foreign, uint64_t now_ns);
void counters_note_sampler(struct counters *counters, const struct control_daemon *sampler, uint64_t now_ns);

/* Forgets what has been gone for long. */
void counters_sweep(struct counters *counters, uint64_t now_ns);

/* NULL: no such service. Valid until the next of the calls above. */
const struct counters_sum *counters_of(const struct counters *counters, const char *service);
uint64_t counters_cpu_ns(const struct counters *counters);

#endif
