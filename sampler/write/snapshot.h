/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A snapshot: the books of one target at one instant, to be written as one or more profiles. struct
 * heap_snapshot and struct event_snapshot begin with it.
 *
 * A forked child of the sampler writes it. The fork makes a consistent copy, so the parent goes on draining
 * meanwhile, and a debug file that crashes libdw kills only the child.
 */
#ifndef SAMPLER_WRITE_SNAPSHOT_H
#define SAMPLER_WRITE_SNAPSHOT_H

#include "sampler/intake/target.h"
#include "sampler/write/sink.h"
#include "sampler/write/snapshot_series.h"
#include "sampler/write/writer.h"

enum snapshot_kind {
	SNAPSHOT_NUMBERED, /* 0001, 0002...: by interval, threshold, signal, `heaptap snapshot`, program */
	SNAPSHOT_EXIT,
	SNAPSHOT_MEMORY, /* for a client that wants no file: takes no number */
};

struct snapshot {
	struct writer_item item; /* first: all that the writer knows of a snapshot */
	struct target *target;
	enum snapshot_kind kind;
	unsigned int by; /* enum snapshot_by: who asked for it */
	const struct sink *sink;
	struct sink_memory memory; /* of SNAPSHOT_MEMORY */
	const char *path;          /* of its first profile; "" if it has none */
	/* Of SNAPSHOT_NUMBERED: the files that --keep may remove later. Some may be NULL. */
	const char *files[SNAPSHOT_FILES];
	size_t file_count;
	char cause[512]; /* "0001, every 60 s": what the comment says after "snapshot: " */
	char host[65];
	/* A comment that names the session and the start of the process, see ORIGIN_IDENTITY_FORMAT; "" if
	 * there is none. */
	char identity[96];
	bool debuginfod; /* missing debug files may be fetched */
	int64_t unix_ns; /* when the snapshot was taken */
	/* Clients that are told when it is complete; see sampler/core/control_server.h. */
	uint64_t askers[SNAPSHOT_ASKERS];
	uint32_t asker_count;
};

/* ---- a source makes the snapshots that the scheduler orders: there is one for heaps and one for events
 * (heap_source.h, event_source.h) */

struct scheduler;
struct snapshot_source;

/* Why the scheduler wants to know whether there is anything to write. */
enum snapshot_reason {
	SNAPSHOT_REASON_ASKED,
	SNAPSHOT_REASON_DUE,
	SNAPSHOT_REASON_END,
};

/* Why the last profile of a target is not written. */
enum snapshot_drop {
	SNAPSHOT_DROP_FEW,    /* has() says that there is nothing to write */
	SNAPSHOT_DROP_CROWD,  /* too many ended processes wait for theirs */
	SNAPSHOT_DROP_PAUSED, /* the scheduler is paused */
	SNAPSHOT_DROP_USER,   /* processes of other users have left too many */
	SNAPSHOT_DROPS,
};

/* How a source looks at a target. */
enum snapshot_look {
	SNAPSHOT_LOOK_LAST,   /* the target has ended: looks only for requests that it made before */
	SNAPSHOT_LOOK_OFTEN,  /* every 50 ms */
	SNAPSHOT_LOOK_RARELY, /* the same, about once a second */
};

/* What a source is to make. */
struct snapshot_order {
	enum snapshot_kind kind;
	const char *name;  /* of the file, and the first word of the comment: "0001", "exit" */
	const char *cause; /* "every 60 s" */
	unsigned int by;   /* enum snapshot_by: who asked */
};

struct snapshot_source_kind {
	bool in_memory; /* take() can make SNAPSHOT_MEMORY, of one profile without any other file */
	bool grows; /* users ask what grows in its profiles, which takes early snapshots: see interval.h */
	/* Looks for requests of a target. May be NULL. */
	void (*look)(
	    struct snapshot_source *source, struct target *target, uint64_t now_ns, enum snapshot_look how);
	/* Is there anything to write? */
	bool (*has)(
	    const struct snapshot_source *source, const struct target *target, enum snapshot_reason reason);
	/* May a target leave a last profile, whoever its user is? Spends its share. May be NULL: always. */
	bool (*may_leave)(struct snapshot_source *source, const struct target *target);
	/* Makes a snapshot: its item, files and unix_ns; the scheduler sets the rest. Returns 0 or -errno. */
	int (*take)(struct snapshot_source *source, struct target *target, const struct snapshot_order *order,
	    struct snapshot **snapshot);
	/* A numbered snapshot was taken, or could not be: -errno. May be NULL. */
	void (*taken)(struct snapshot_source *source, struct target *target,
	    const struct snapshot_order *order, int error);
	/* A snapshot with files is on disk, or could not be written: -errno, which has been logged. The last
	 * one of a target is for the user's summary. May be NULL. */
	void (*written)(struct snapshot_source *source, const struct snapshot *snapshot, int error);
	/* A target has ended without a last profile. May be NULL. */
	void (*dropped)(struct snapshot_source *source, const struct target *target, enum snapshot_drop why);
	/* A closed target is not needed any more. */
	void (*release)(struct snapshot_source *source, struct target *target);
};

/* The beginning of a struct of the source's. */
struct snapshot_source {
	const struct snapshot_source_kind *kind;
	struct scheduler *scheduler;
};

#endif
