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

#endif
