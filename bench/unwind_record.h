/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Records the stacks of a real program's main thread through perf: at calls of a function (a uprobe, as
 * heaptap's probe backend does) or every so often on the CPU clock (any instruction, the hard case for an
 * unwinder).
 */
#ifndef BENCH_UNWIND_RECORD_H
#define BENCH_UNWIND_RECORD_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>
#include <linux/perf_event.h>

struct trigger {
	const char *file, *function; /* NULL: the CPU clock */
	uint64_t period;             /* calls, or nanoseconds of CPU time */
	uint32_t stack_bytes;
};

/* Raw perf records one behind the other, samples and maps in order, as sampler/perf/record.h parses them. */
struct recording {
	uint8_t *bytes;
	size_t used, room;
	size_t samples, lost;
	pid_t pid;
};

/*
 * Runs ARGV until it has ended or MAX_SAMPLES are there (at most half a minute), then kills it. LOAD: a
 * program to run beside it that gives it work, NULL for none. 0 or -errno. RECORDING is the caller's to free.
 */
int recording_run(struct recording *recording, char *const argv[], char *const load[],
    const struct trigger *trigger, size_t max_samples);
void recording_free(struct recording *recording);

/* The record at *AT, which moves on; NULL at the end. */
const struct perf_event_header *recording_next(const struct recording *recording, size_t *at);

#endif
