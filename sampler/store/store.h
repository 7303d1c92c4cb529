/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The store of a machine's profiles on disk (names: pprof/service/store_name.h), held within its budget.
 *
 * The daemon opens it and names files; the writer's children publish them through its sink. What is in the
 * store is known from its names alone. Everything that changes it holds a lock (flock(2) on .lock):
 * publishing counts the bytes in memory that daemon and children share, and only if they do not fit, or it
 * is time to thin by age, the folders are read and files removed (store_plan.h). So the daemon itself never
 * waits for a disk.
 *
 * Never followed are links, never removed what the store's names do not describe. The store may be deleted,
 * full or read-only at any time: publishing then returns an error, and works again when the reason is gone.
 */
#ifndef SAMPLER_STORE_STORE_H
#define SAMPLER_STORE_STORE_H

#include "sampler/snapshot/sink.h"

#include "pprof/service/store_name.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct store;

struct store_settings {
	const char *path;      /* absolute; copied */
	uint64_t disk_bytes;   /* budget: files and folders, in blocks of 4 KiB */
	uint32_t days;         /* older files go, whatever they are */
	uint32_t free_percent; /* of the file system: below it nothing is written */
};

struct store_counters {      /* since it was opened, children's work included */
	uint64_t disk_bytes; /* now, as counted against the budget; at least what is there */
	uint64_t written, written_bytes;
	uint64_t thinned, thinned_bytes; /* removed because of age */
	uint64_t evicted, evicted_bytes; /* removed because of the budget, days or free */
	uint64_t failed;                 /* not written */
	uint64_t stuck;                  /* files that had to go and could not be removed, at the last look */
};

/* Makes the folder (0750, group heaptap if there is one) and counts what is in it. 0, or -errno: -EROFS,
 * -EACCES...; with those *store is there all the same, and works once the folder can be written. -ENOMEM:
 * NULL. */
int store_open(struct store **store, const struct store_settings *settings);
void store_close(struct store *store); /* NULL is fine; in the process that opened it */

/* SIGHUP: new limits, and also a new path. 0 or -ENOMEM. Children that write already still have the old
 * ones. */
int store_change(struct store *store, const struct store_settings *settings);

/*
 * The path for a file of a process, which no other file was given: STORE/SERVICE/DAY/HHMMSS.PID.KIND.pb.gz.
 * service is cleaned, snapshot is the scheduler's word for it (store_name_of_snapshot()). Of the names of one
 * owner only so many have a folder of their own, 64 or what is a quarter of the budget; what would be of a
 * further one goes to the service "others.OWNER". Nothing is made on disk. 0, -ENAMETOOLONG.
 */
struct store_claim {
	const char *service, *snapshot;
	const char
	    *owner; /* who has chosen the name of the service; NULL or "": nobody but the user of the store */
	pid_t pid;
	int64_t time_s; /* since 1970 */
	bool oom;
};
int store_claim(struct store *store, const struct store_claim *claim, char *path, size_t path_bytes);

/* For snapshot_settings.sink: publishes below the store, with its modes and within its budget. In a child
 * of the daemon or in itself. -EDQUOT: the budget has no room for it; -ENOSPC: nor has the disk. */
const struct sink *store_sink(struct store *store);

/* Thins by age now, if that is due. Publishing does this too; for a daemon that publishes nothing. Reads
 * all folders: call it where waiting does no harm. 0 or -errno. */
int store_tend(struct store *store);

/* True: for ten minutes nobody has, although it was due, or the limits have changed since. Reads no disk. */
bool store_is_overdue(const struct store *store, int64_t now_s);

void store_count(const struct store *store, struct store_counters *counters);

#endif
