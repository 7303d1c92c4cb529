/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The series of a process' snapshots: what the scheduler and the source of the snapshots remember from one
 * snapshot to the next.
 *
 * A series has the requests for snapshots, the files that --keep keeps, what the heap has in use over time,
 * and the state of the scheduler's files. Each part belongs to the file that is named beside the part: only
 * that file changes the part.
 */
#ifndef SAMPLER_WRITE_SNAPSHOT_SERIES_H
#define SAMPLER_WRITE_SNAPSHOT_SERIES_H

#include "pprof/analysis/trend.h"
#include "pprof/text/throttle.h"
#include "sampler/intake/region.h"
#include "sampler/linux/pidfd.h"
#include "sampler/write/interval.h"
#include "sampler/write/resident_watch.h"
#include "sampler/write/threshold_watch.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct sink;
struct snapshot_source;
struct target;

/*
 * ---- the request of a snapshot of one process: from the reason for it to the file on disk. Pure.
 *
 *                        ask
 *        +-----------------------------------+
 *        |                                   v
 *      NONE ----due----> DUE ----ask----> ASKED <-----------written-----------+
 *      ^  ^               ^               | | |                               |
 *      |  +-not due, drop-+               | | +--------beside--------+        |
 *      |  |               |               | |                        |        |
 *      |  +---------------|-----drop------+ |                        v        |
 *      |                  +-------take------+---> WRITING ---ask---> WRITING_ASKED
 *      |                                           |   ^                |
 *      +------------------written------------------+   +------drop------+
 *
 * Two arrows are missing in the drawing: `beside` leads from NONE to WRITING, and from DUE to WRITING. In a
 * state without an arrow for an event, the event changes nothing.
 *
 * At most one snapshot is in the writer. All who ask meanwhile get the next one together, because the one
 * that is being written may be older than their request. A periodic snapshot that is due while another is
 * written needs no state: the scheduler looks at the clock again as soon as that one is on disk.
 *
 * A process has two requests: one for snapshots that are files, and one for snapshots in shared memory, which
 * are never due.
 */
enum { SNAPSHOT_ASKERS = 16 }; /* clients that can wait for one snapshot: all of the control socket */

enum request_state {
	REQUEST_NONE,          /* nothing is asked for, and nothing is written */
	REQUEST_DUE,           /* by the clock; waits for its turn with the writer */
	REQUEST_ASKED,         /* the next look of the scheduler takes it */
	REQUEST_WRITING,       /* the writer has a snapshot */
	REQUEST_WRITING_ASKED, /* the writer has a snapshot, and another one is asked for */
};

enum request_event {
	REQUEST_ON_ASK,     /* a client, the program, a signal or a threshold asks */
	REQUEST_ON_DUE,     /* the interval is over */
	REQUEST_ON_NOT_DUE, /* the interval is not over, or is longer now */
	REQUEST_ON_TAKE,    /* the snapshot that waited was taken, and the writer has it */
	REQUEST_ON_BESIDE,  /* the writer has one because of another request: events beside a heap */
	/* The snapshot that is asked for is not taken: it failed, or it is refused, or no client waits for it
	 * any more, or the last profile answers the request. */
	REQUEST_ON_DROP,
	REQUEST_ON_WRITTEN, /* the snapshot is on disk, or could not be written */
};

/* Who asked: a set. */
enum snapshot_by {
	SNAPSHOT_BY_CLOCK = 1 << 0,
	SNAPSHOT_BY_PROGRAM = 1 << 1, /* heaptap_snapshot() */
	SNAPSHOT_BY_SIGNAL = 1 << 2,  /* to the process */
	SNAPSHOT_BY_THRESHOLD = 1 << 3,
	SNAPSHOT_BY_CLIENT = 1 << 4, /* the sampler's user: `heaptap snapshot`, or a signal to the sampler */
	SNAPSHOT_BY_HAND = SNAPSHOT_BY_SIGNAL | SNAPSHOT_BY_CLIENT,
};

struct snapshot_request {
	enum request_state state; /* changed by snapshot_request_step() alone */
	/* About the snapshot that is asked for and was not taken yet. */
	unsigned int by;                  /* enum snapshot_by: who asked */
	char cause[384];                  /* for the profile's comment */
	char name[64];                    /* a word in the file's name; "" none */
	uint64_t askers[SNAPSHOT_ASKERS]; /* clients that wait for an answer */
	uint32_t asker_count;
};

/* Makes every change of the state. */
void snapshot_request_step(struct snapshot_request *request, enum request_event event);

/* Is a snapshot asked for that was not taken yet? */
bool snapshot_request_is_asked(const struct snapshot_request *request);

/* Asks. Until the snapshot is taken, the first cause and name are kept; the cause of a threshold is appended
 * to an earlier one. name: NULL for none. asker: 0 if no client waits. False: too many clients wait. */
bool snapshot_request_ask(struct snapshot_request *request, enum snapshot_by by, const char *cause,
    const char *name, uint64_t asker);

/* Moves the clients that wait to `askers`, and returns their number. Call it before any client is answered.
 * An answer may find that its client has gone. Then snapshot_request_forget() is called, and the request must
 * have no clients by then. */
uint32_t snapshot_request_take_askers(struct snapshot_request *request, uint64_t askers[SNAPSHOT_ASKERS]);

/* The asker has gone: its place is free for another. */
void snapshot_request_forget(struct snapshot_request *request, uint64_t asker);

/* ---- the files of numbered snapshots: --keep keeps the newest snapshots, and the files of older ones are
 * removed */

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

/* Notes the files of a new snapshot, then removes the oldest snapshots beyond `keep` (0: all are kept). Only
 * files that are in the sink are noted, since a file may not have been written. If no file is noted, nothing
 * is removed. Snapshots by thresholds are counted apart: the clock's snapshots are many, and would push them
 * out. */
void kept_files_add(struct kept_files *files, const char *const *paths, size_t path_count, bool by_threshold,
    size_t keep, const struct sink *sink);

/* ---- the series */

struct snapshot_series {
	/* The scheduler's list of all series. The scheduler makes and frees them. */
	struct snapshot_series *next_series, **link;
	struct target *target;          /* the process */
	struct snapshot_source *source; /* makes its snapshots */

	/* When: scheduler.c. */
	struct interval_clock periodic;              /* of the periodic snapshots */
	struct snapshot_request numbered, in_memory; /* by snapshot_request_step() */
	uint64_t turn;         /* number of its last periodic snapshot among those of all processes */
	uint64_t refreshed_ns; /* when thread names and the cgroup were last read */
	struct oom_watch death;

	/* What the writer has: scheduler_write.c. */
	uint32_t next_number; /* of the next numbered snapshot, from 1 */
	uint32_t in_writer;   /* snapshots of any kind that are in the writer */
	uint64_t failed;      /* snapshots that could not be taken or written */
	int error;            /* of the last numbered one; 0: success */
	int beside_error;     /* of the last path that scheduler_reserve_beside() made */
	struct kept_files kept;

	/* What a heap has more: heap_source.c. */
	struct snapshot_heap {
		/* The program's own requests, of which some are refused. */
		uint32_t signals_seen, asked_seen;
		struct throttle requests;
		uint64_t refused;
		struct peak_file {
			char *path;           /* owned; NULL: none was made yet */
			uint64_t reserved_ns; /* when the path was made; monotonic */
			uint64_t order;       /* number of the peak in the file; 0: not written yet */
		} peak;                       /* heap_snapshot.c */
		struct trend_series trend;    /* by snapshot_series_note_trend() */
		struct resident_watch resident;
		struct threshold_watch *thresholds; /* NULL: none */
		/* It was said that a threshold is crossed more often than there may be snapshots. */
		bool limit_said;
	} heap;
};

/* Makes the series of a process that is sampled since begin_ns. An earlier sampler has taken the snapshots
 * that were due until now_ns. interval_ns: see interval.h. NULL if out of memory. */
struct snapshot_series *snapshot_series_new(uint64_t begin_ns, uint64_t interval_ns, uint64_t now_ns);
void snapshot_series_free(struct snapshot_series *series); /* NULL is fine; leaves its list */

/* Puts a new series at the head of a list. */
void snapshot_series_enlist(struct snapshot_series *series, struct snapshot_series **list);

/* ---- what a process has in use over time, by its own counts: this tells whether the heap grows
 * (trend.h) */

/* The counts of the place as a point of the series. now_ns: monotonic. */
struct trend_point snapshot_series_trend_point(const struct region_place *place, uint64_t now_ns);

/* Adds a point if one is due: call it about once a second. The first point is due with the first snapshot. */
void snapshot_series_note_trend(
    struct snapshot_series *series, const struct region_place *place, uint64_t now_ns);

#endif
