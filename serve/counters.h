/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What services and samplers have counted: for /metrics, where a counter must never fall.
 *
 * A sampler's list has the counts of each live process since its profiling began, and nothing of ended
 * processes. A sum here adds what each process has counted since the last look, and keeps that when the
 * process ends. A process is remembered for a while after the last list that had it, since a sampler may miss
 * one look. A service is forgotten with its last process.
 */
#ifndef SERVE_COUNTERS_H
#define SERVE_COUNTERS_H

#include "sampler/core/control_list.h"

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

/* Counts what a list says of a profiled process, and of the sampler that wrote the list. A process is not
 * counted if there is no room or memory. Foreign processes may take half of the room. now_ns: monotonic. */
void counters_note(struct counters *counters, const char *service, const struct control_process *listed,
    bool foreign, uint64_t now_ns);
void counters_note_sampler(struct counters *counters, const struct control_daemon *sampler, uint64_t now_ns);

/* Forgets processes and samplers that were last seen long ago. */
void counters_sweep(struct counters *counters, uint64_t now_ns);

/* NULL: there is no such service. Valid until the next call of the functions above. */
const struct counters_sum *counters_of(const struct counters *counters, const char *service);
uint64_t counters_cpu_ns(const struct counters *counters);

#endif
