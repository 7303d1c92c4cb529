/* SPDX-License-Identifier: Apache-2.0 */
/* What is sampled of heaps, and how: from the command line, or as the daemon decides. */
#ifndef SAMPLER_CORE_HEAP_CAPTURE_OPTIONS_H
#define SAMPLER_CORE_HEAP_CAPTURE_OPTIONS_H

#include "sampler/perf/probe.h"

#include <stdbool.h>
#include <stdint.h>

#define PERIOD_BYTES_DEFAULT (512u << 10)
#define PERIOD_BYTES_MAX     (UINT64_C(1) << 40)
#define STACK_BYTES_DEFAULT  (32u << 10)
#define STACK_BYTES_MIN      256u
#define STACK_BYTES_MAX      (64u << 10)
#define TEMPORARY_NS_DEFAULT (UINT64_C(1) * 1000000)

struct heap_capture_options {
	uint64_t period_bytes; /* mean bytes between samples, 1 .. PERIOD_BYTES_MAX; 1 samples everything */
	enum backend backend;
	uint32_t stack_bytes;       /* most per sample, STACK_BYTES_MIN .. STACK_BYTES_MAX, any number */
	const char *library;        /* absolute path; filled in before heap_capture_probe() */
	const char *only, *exclude; /* regular expressions of programs; NULL: not given */
	int signal;                 /* signal that asks for a snapshot, 0: none */
	bool signal_everywhere;     /* in every process that leaves it at its default */
	unsigned int labels;        /* enum heap_labels */
	uint64_t temporary_ns;      /* a block freed sooner is temporary */
	bool paused;                /* no samples until the program calls heaptap_start() */
	bool record_mmap;           /* anonymous mappings too */
	bool delta;                 /* write a delta beside each periodic snapshot */
	uint64_t compare_walks;     /* of so many walked stacks one is compared; 0: the default */
	bool no_peak;               /* do not track or write the peak */
	bool beside_events;         /* the rings of events need memory, too */
};

#endif
