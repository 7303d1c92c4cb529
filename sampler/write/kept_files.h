/* SPDX-License-Identifier: Apache-2.0 */
/* The files of one process' numbered snapshots: --keep keeps the newest snapshots, and the files of older
 * ones are removed. */
#ifndef SAMPLER_WRITE_KEPT_FILES_H
#define SAMPLER_WRITE_KEPT_FILES_H

#include <stdbool.h>
#include <stddef.h>

struct sink;

enum { SNAPSHOT_FILES = 16 }; /* that one snapshot may have */

struct kept_files {
	struct kept_snapshot {
		char *paths[SNAPSHOT_FILES];
		size_t path_count;
		bool by_threshold;
	} * snapshots; /* oldest first */
	size_t count, capacity;
};

void kept_files_fini(struct kept_files *files);

/* A snapshot was written, or some of its files: files that are not in the sink push out nothing. Then the
 * oldest snapshots beyond `keep` are removed (0: all are kept). Snapshots by thresholds are counted apart
 * from all others, because the clock's are many and would push them out. */
void kept_files_add(struct kept_files *files, const char *const *paths, size_t path_count, bool by_threshold,
    size_t keep, const struct sink *sink);

#endif
