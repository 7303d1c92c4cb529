/* SPDX-License-Identifier: Apache-2.0 */
/* What lists said of processes over time: points for time lines, a bounded number of each process. */
#ifndef SERVE_CATALOG_HISTORY_H
#define SERVE_CATALOG_HISTORY_H

#include "pprof/table/series.h"
#include "sampler/core/control_list.h"
#include "serve/snapshots.h"

enum { CATALOG_HISTORY_POINTS = 512 };

struct catalog_point {
	int64_t unix_ns;
	double inuse_bytes, error_bytes, allocated_bytes; /* NaN: not known */
	int64_t rss_bytes;                                /* -1: not known */
};

struct catalog_histories {
	struct catalog_history_entry *entries;
	size_t count;
};

/* Notes what a list says of a process now. Returns the points of the process, or NULL if there is no memory
 * or there are too many processes. now_ns: monotonic. */
struct series *catalog_histories_note(struct catalog_histories *histories, const struct process_key *key,
    const struct control_process *listed, uint64_t now_ns, int64_t unix_ns);

/* Forgets those of processes that were not noted for a while: a sampler that does not answer once, or that
 * is started again, is no end. */
void catalog_histories_sweep(struct catalog_histories *histories, uint64_t now_ns);
void catalog_histories_fini(struct catalog_histories *histories);

#endif
