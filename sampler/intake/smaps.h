/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The text of /proc/PID/smaps, see proc(5): one mapping after another, each a line as in /proc/PID/maps and
 * lines like "Rss:     8 kB". Pure: bytes come in pieces of any size, whole mappings go out. Memory is
 * bounded, whatever the bytes are.
 */
#ifndef SAMPLER_INTAKE_SMAPS_H
#define SAMPLER_INTAKE_SMAPS_H

#include "sampler/unwind/maps.h"

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A longer line is cut: the kernel has lengthened its path by escapes. */
enum { SMAPS_LINE_BYTES = PATH_MAX + 128 };

struct smaps_mapping {
	struct map_range range; /* its path is valid during the visit only; no build id */
	bool shared;
	uint64_t rss_bytes, swap_bytes;
	uint64_t alone_bytes; /* written to, and in no other process: Private_Dirty */
};

struct smaps {
	void (*visit)(void *context, const struct smaps_mapping *mapping);
	void *context;

	struct smaps_mapping mapping; /* the mapping that is being read */
	bool open;                    /* a mapping is being read */
	bool broken;                  /* the text is not that of such a file */
	char head[SMAPS_LINE_BYTES];  /* the mapping's first line */
	char line[SMAPS_LINE_BYTES];  /* the line that is being read, as far as it has come */
	size_t length;
};

/* `visit` gets each mapping as soon as it is complete. */
void smaps_begin(
    struct smaps *smaps, void (*visit)(void *context, const struct smaps_mapping *mapping), void *context);
void smaps_feed(struct smaps *smaps, const char *bytes, size_t count);

/* The bytes have ended. Returns 0, or -EPROTO if they were not such a text, or if its mappings overlap:
 * the process has changed them between two reads, so sums over the mappings mean nothing. */
int smaps_end(struct smaps *smaps);

#endif
