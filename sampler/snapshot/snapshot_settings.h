/* SPDX-License-Identifier: Apache-2.0 */
/* The settings of snapshots: when, of what, in how much detail. The session fills them in from the
 * options. */
#ifndef SAMPLER_SNAPSHOT_SNAPSHOT_SETTINGS_H
#define SAMPLER_SNAPSHOT_SNAPSHOT_SETTINGS_H

#include "sampler/snapshot/threshold_watch.h"
#include "sampler/symbol/answer.h"

#include <stdbool.h>
#include <stdint.h>

struct sink;

struct snapshot_settings {
	uint64_t interval_ns;      /* between periodic snapshots: see schedule.h */
	uint64_t keep;             /* numbered snapshots of a process, the newest; 0: all */
	enum symbol_detail detail; /* of symbols */
	uint64_t min_samples;      /* processes with fewer leave no profile, but COMMAND does, and who
	                                  * is resident_watch_is_large() */
	int verbosity;             /* -1, 0, 1... as options have it */
	bool debuginfod;           /* missing debug files may be fetched */
	bool delta;                /* write a delta beside each periodic snapshot */
	const struct sink *sink;   /* borrowed: where profiles go */
	struct threshold_settings thresholds;
};

#endif
