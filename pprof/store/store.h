/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The store of a machine's profiles on disk, within a budget. Its names (pprof/store/store_name.h) say all
 * that is known of its files.
 *
 * The daemon opens the store and names files; the writer's children publish the files through its sink.
 * Whoever changes the store holds a lock (flock(2) on .lock). Publishing counts bytes in memory that the
 * daemon and its children share. The folders are read, and files removed (store_plan.h), only if a file does
 * not fit or if it is time to thin by age. So the daemon itself never waits for a disk.
 *
 * No link is followed. Files with other names are never removed. The store may be deleted, full or read-only
 * at any time: publishing then returns an error, and works again when the reason is gone.
 */
#ifndef PPROF_STORE_STORE_H
#define PPROF_STORE_STORE_H

#include "pprof/codec/file.h"

#include "pprof/store/store_name.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct store;

struct store_settings {
	const char *path;      /* absolute; copied */
	uint64_t disk_bytes;   /* budget: files and folders, in blocks of 4 KiB */
	uint32_t days;         /* all older files are removed */
	uint32_t free_percent; /* nothing is written while less of the file system is free */
};

struct store_counters {      /* since the store was opened, by the daemon and its children */
	uint64_t disk_bytes; /* now, as counted against the budget; at least what is there */
	uint64_t written, written_bytes;
	uint64_t thinned, thinned_bytes; /* removed because of age */
	uint64_t evicted, evicted_bytes; /* removed because of the budget, days or free */
	uint64_t failed;                 /* not written */
	uint64_t stuck;                  /* files that had to go and could not be removed, at the last look */
};

/* Makes the folder (0750, group heaptap if there is one) and counts what is in it. 0 or -errno. *store is
 * NULL after -ENOMEM; after any other error it works once the folder can be written. */
int store_open(struct store **store, const struct store_settings *settings);
void store_close(struct store *store); /* NULL is fine; only for the process that opened the store */

/* Sets new limits, and a new path (SIGHUP). Children that write already keep the old ones. 0 or -ENOMEM. */
int store_change(struct store *store, const struct store_settings *settings);

/*
 * Chooses a path that no other file was given: STORE/SERVICE/DAY/HHMMSS.PID.KIND.pb.gz. `service` is
 * cleaned; `snapshot` is the scheduler's name (store_name_of_snapshot()). One owner may choose 64 names of
 * services. A small store allows fewer names (4 at least), because the folders of an owner's names take at
 * most a quarter of the budget. Files of further names go to the service "others.OWNER". Nothing is made on
 * disk. 0 or -ENAMETOOLONG.
 */
struct store_claim {
	const char *service, *snapshot;
	const char
	    *owner; /* the owner who has chosen the service's name; NULL or "": the user of the store */
	pid_t pid;
	int64_t time_s; /* since 1970 */
	bool oom;
};
int store_claim(struct store *store, const struct store_claim *claim, char *path, size_t path_bytes);

/* For snapshot_settings.sink: publishes below the store, with its modes and within its budget, in the daemon
 * or in a child of it. -EDQUOT: the budget has no room for the file; -ENOSPC: the disk has none. */
const struct sink *store_sink(struct store *store);

/* Thins by age if that is due, as publishing does. Reads all folders: call it where waiting does no harm.
 * 0 or -errno. */
int store_thin(struct store *store);

/* Has thinning been due for ten minutes, or have the limits changed since the last time? Reads no disk. */
bool store_is_overdue(const struct store *store, int64_t now_s);

void store_count(const struct store *store, struct store_counters *counters);

#endif
