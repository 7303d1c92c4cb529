/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What is in a store, by the names in it (store_name.h); no profile is opened. Links are not followed, and
 * everything that has another name is passed over: the store may have been put together by anybody.
 */
#ifndef PPROF_SERVICE_STORE_LIST_H
#define PPROF_SERVICE_STORE_LIST_H

#include "pprof/service/service_name.h"
#include "pprof/service/store_name.h"

#include <stddef.h>
#include <stdint.h>

enum { STORE_LIST_FILES_MOST = 4 << 20 }; /* what lies beyond is passed over */

/* 32 bytes, so that a store of 100,000 files takes 3 MB. */
struct store_file {
	int64_t time_s;   /* since 1970 */
	uint64_t bytes;   /* of its contents; UINT64_MAX: not asked for */
	uint32_t service; /* number in store_list.services */
	uint32_t kind;    /* number in store_list.kinds */
	pid_t pid;
	uint8_t class; /* enum store_class */
	uint8_t is_profile;
};

struct store_list {
	struct store_file *files; /* by service, then time, pid, kind */
	size_t file_count;
	char (*services)[SERVICE_NAME_BYTES];
	size_t service_count;
	char (*kinds)[STORE_NAME_KIND_BYTES];
	size_t kind_count;
	uint64_t folder_bytes; /* of all folders, with sizes */
	size_t file_room, service_room, kind_room;
};

/* All zero is empty. */
void store_list_fini(struct store_list *list);

/* Reads the store, or one service's part of it (NULL: all). with_sizes: a call of fstatat(2) for each file.
 * 0, or -errno of the store's own folder (-ENOENT, -EACCES, -ENOTDIR), -ENOMEM; what else cannot be read is
 * left out. */
int store_list_read(struct store_list *list, const char *store, const char *service, bool with_sizes);

/* The same below an open folder, which stays open. */
int store_list_read_at(struct store_list *list, int store_fd, const char *service, bool with_sizes);

/* What it is called: "redis/2026-11-22/101500.4711.heap.pb.gz", relative to the store. 0 or -ENAMETOOLONG. */
int store_list_path(
    const struct store_list *list, const struct store_file *file, char *path, size_t path_bytes);

/* Files of a service: [*first, *first + the returned number). 0 if there is no such service. */
size_t store_list_service(const struct store_list *list, const char *service, size_t *first);

#endif
