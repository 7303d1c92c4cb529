/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The series of one process' snapshots: the next number and when it is due, what waits to be taken, which
 * files exist.
 *
 * At most one numbered snapshot of a process is in the writer. Others wait meanwhile. All requests together
 * wait for one snapshot, until the writer is done. A periodic snapshot waits until the next one is due, and
 * is then skipped.
 */
#ifndef SAMPLER_SNAPSHOT_SNAPSHOT_SERIES_H
#define SAMPLER_SNAPSHOT_SNAPSHOT_SERIES_H

#include "sampler/linux/exit_status.h"
#include "sampler/snapshot/timeline.h"

#include <stdbool.h>
#include <stdint.h>

struct target;
struct snapshot_source;

enum { SNAPSHOT_ASKERS = 8 }; /* who can wait for one snapshot */

struct snapshot_series {
	/* all series of a scheduler, which makes and frees them */
	struct snapshot_series *next_series, **link;
	struct target *target;          /* the process */
	struct snapshot_source *source; /* where its snapshots come from */
	uint32_t next;                  /* number, from 1 */
	uint64_t due_ns;                /* of the next periodic one; monotonic */
	bool writing;                   /* a numbered one is in the writer */
	uint32_t jobs;                  /* in the writer, of any kind */
	uint64_t skipped, failed;
	uint64_t refused;        /* of those that the program asked for */
	uint64_t asked_until_ns; /* what it has asked for, at one a second, lasts until then */
	int error;               /* of the last one that was tried; 0: it was taken */
	uint64_t refreshed_ns;   /* when thread names and cgroup were last looked at */

	/* asked for */
	bool wanted;
	char wanted_cause[128], wanted_name[64];
	uint64_t askers[SNAPSHOT_ASKERS];
	uint32_t asker_count;
	uint32_t signals_seen, asked_seen;

	/* files; NULL until the first is written */
	char *peak_path, *timeline_path, *lifetimes_path;
	uint64_t peak_written; /* its order number */
	int extra_error;       /* of the last name for such a file; 0: it got one */
	struct snapshot_series_file {
		char *path, *delta_path;
	} * kept; /* oldest first */
	size_t kept_count, kept_capacity;

	struct timeline timeline;
	struct oom_watch death;
};

/* first_due_ns: of the first periodic snapshot. NULL: out of memory. */
struct snapshot_series *snapshot_series_new(uint64_t first_due_ns);
void snapshot_series_free(struct snapshot_series *series); /* NULL is fine; leaves its list */

/* Puts a new series at the head of a list. */
void snapshot_series_enlist(struct snapshot_series *series, struct snapshot_series **list);

/* Is the periodic snapshot due? Counts those that it is too late for in `skipped`. interval_ns 0: never. */
enum snapshot_series_due {
	SNAPSHOT_SERIES_NOT_DUE,
	SNAPSHOT_SERIES_DUE,
};
enum snapshot_series_due snapshot_series_look(
    struct snapshot_series *series, uint64_t interval_ns, uint64_t now_ns);

/* A periodic snapshot was taken, or not needed. */
void snapshot_series_advance(struct snapshot_series *series, uint64_t interval_ns, uint64_t now_ns);

/* Requests a snapshot. The first cause and name stay until it is taken. asker 0: nobody waits. False: too
 * many wait. */
bool snapshot_series_want(
    struct snapshot_series *series, const char *cause, const char *name, uint64_t asker);

/* May the program have one more? A burst of 16, then one a second; the rest is counted in `refused`. */
bool snapshot_series_allows(struct snapshot_series *series, uint64_t now_ns);

/* A numbered snapshot is on disk: removes the oldest beyond `keep` (0: keeps all). Returns 0 or -ENOMEM. */
int snapshot_series_keep(
    struct snapshot_series *series, const char *path, const char *delta_path, size_t keep);

#endif
