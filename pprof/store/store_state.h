/* SPDX-License-Identifier: Apache-2.0 */
/* What the parts of a store share: store.c, store_claim.c and store_sweep.c. */
#ifndef PPROF_STORE_STORE_STATE_H
#define PPROF_STORE_STORE_STATE_H

#include "pprof/codec/file.h"

#include <stdatomic.h>
#include <stdint.h>
#include <sys/types.h>

enum { STORE_FOLDER_CHARGE = 4096 }; /* what a folder counts against the budget */

/* The names and the paths that were given out, as hashes. All zero is empty. */
struct store_claims {
	struct store_name_owner {
		uint64_t name, owner;
		int64_t time_s; /* of the last file */
	} * names;
	size_t name_count, name_room;
	struct store_claimed_path {
		uint64_t hash;
		int64_t time_s;
	} * paths;
	size_t path_count, path_room;
};

/* What daemon and children share. Written under the lock; read at any time. */
struct store_shared {
	_Atomic uint64_t used_bytes;
	_Atomic uint64_t written, written_bytes, thinned, thinned_bytes, evicted, evicted_bytes, failed,
	    stuck;
	/* the folder that used_bytes is of, and when it is looked at again; 0: never looked at */
	_Atomic uint64_t device, inode;
	_Atomic int64_t looked_s, look_s;
	_Atomic int64_t short_s; /* when a look made no room */
	_Atomic uint64_t limits; /* the number of the limits of the last look */
};

struct store {
	struct sink sink; /* first */
	char *path;
	uint64_t disk_bytes;
	uint32_t days, free_percent;
	uint64_t limits; /* the number of these limits; a child has the limits of its fork */
	gid_t group;
	struct store_shared *shared;
	struct store_claims claims;
};

/* ---- store_claim.c */

void store_claims_fini(struct store_claims *claims);

/* ---- store_sweep.c */

/*
 * One look at a whole store, which is locked. Removes the files that the plan says must go, the folders that
 * are empty then, temporary files that nobody writes any more, and `timeline.jsonl` files that an earlier
 * version left in folders older than `days`. Files with other names are not touched, and no link is followed.
 * This is the most expensive work of the store: 2 us of CPU time for each file.
 */
struct store_sweep {
	/* wanted */
	int64_t now_s;
	uint32_t days;
	uint64_t disk_bytes; /* budget */
	uint64_t need_bytes; /* room in the budget for the file that is to be written now */
	uint64_t free_bytes; /* as in store_plan.h */
	/* done */
	uint64_t used_bytes; /* of files and folders that are left */
	uint64_t thinned, thinned_bytes, evicted, evicted_bytes;
	uint64_t stuck; /* files that must go and cannot be removed */
};

/* 0 or -errno. After an error nothing was removed, and used_bytes is not set. */
int store_sweep_run(struct store_sweep *sweep, int store_fd);

#endif
