/* SPDX-License-Identifier: Apache-2.0 */
/* What the user wants of snapshots: when, of what, in how much detail. The session fills it from options. */
#ifndef SAMPLER_SNAPSHOT_SNAPSHOT_SETTINGS_H
#define SAMPLER_SNAPSHOT_SNAPSHOT_SETTINGS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct event;
struct sink;

struct snapshot_settings {
	uint64_t interval_ns;            /* between periodic snapshots; 0: none */
	uint64_t keep;                   /* numbered snapshots of a process, the newest; 0: all */
	int detail;                      /* of symbols: enum symbol_level */
	int verbosity;                   /* -1, 0, 1... as options have it */
	unsigned int labels;             /* enum heap_labels */
	uint64_t period_bytes;           /* at the start */
	uint32_t stack_bytes;            /* of a sample, at most */
	bool debuginfod;                 /* debug files may be fetched */
	const struct sink *sink;         /* borrowed: where profiles go */
	bool delta, timeline, lifetimes; /* files to write besides */
	const struct event *events;      /* borrowed; event_count of them */
	size_t event_count;
};

#endif
