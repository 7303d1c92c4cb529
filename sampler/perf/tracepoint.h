/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tracepoints by name, `subsystem:name`, from tracefs. libpfm4 looks for them in debugfs, which most
 * machines no longer mount.
 */
#ifndef SAMPLER_PERF_TRACEPOINT_H
#define SAMPLER_PERF_TRACEPOINT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { TRACEPOINT_PART_BYTES = 64 };

struct tracepoint_name {
	char subsystem[TRACEPOINT_PART_BYTES], name[TRACEPOINT_PART_BYTES];
	char modifiers[4]; /* "", "u", "k" or "uk" */
};

/* Parses "sched:sched_switch" or "sched:sched_switch:u". False for any other form. Pure. */
bool tracepoint_parse(const char *text, struct tracepoint_name *name);

/* Finds the number for perf_event_attr.config. Returns 0, -ENOENT (no such tracepoint), -EACCES (only root
 * may read tracefs) or -ENODEV (no tracefs is mounted). */
int tracepoint_find(const struct tracepoint_name *name, uint64_t *id);

/* Calls `found` with each "subsystem:name", in the file system's order. Returns 0 or -errno as above. */
int tracepoint_each(void (*found)(void *context, const char *name), void *context);

#endif
