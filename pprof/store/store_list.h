/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The files of a store, by their names (store_name.h). No profile is opened, no link is followed, and other
 * names are passed over: anybody may have put the store together.
 */
#ifndef PPROF_STORE_STORE_LIST_H
#define PPROF_STORE_STORE_LIST_H

#include "pprof/store/store_name.h"
#include "pprof/table/intern.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { STORE_LIST_FILES_MOST = 4 << 20 }; /* further files are passed over */

/* 40 bytes, so that a store of 100,000 files takes 4 MB. */
struct store_file {
	int64_t time_s;   /* since 1970 */
	uint64_t bytes;   /* of its contents; 0 unless asked for */
	uint32_t service; /* number in store_list.services */
	uint32_t kind;    /* number in store_list.kinds */
	pid_t pid;
	uint8_t class; /* enum store_class */
};

struct store_day {      /* a folder */
	int64_t time_s; /* its midnight */
	uint32_t service;
};

/* A temporary file: a writer is writing it, or was killed. Or a timeline.jsonl of an earlier version. */
struct store_temporary {
	struct store_day day;
	char name[40];
};

struct store_list {
	struct store_file *files; /* by service, then time, pid, kind */
	size_t file_count;
	char (*services)[SERVICE_NAME_BYTES]; /* sorted */
	size_t service_count;
	/* only with sizes: the folders of days, by service and time; what all folders take; temporary
	 * files */
	struct store_day *days;
	size_t day_count;
	uint64_t folder_bytes;
	struct store_temporary *temporaries;
	size_t temporary_count;

	struct intern kinds;
	size_t file_room, service_room, day_room, temporary_room;
};

/* The bytes that a folder of that size takes, as in folder_bytes. It grows with the names in it. */
uint64_t store_list_folder_bytes(uint64_t size_bytes);

/* All zero is empty. */
void store_list_fini(struct store_list *list);

/* Reads the store, or one service of it (NULL: all). with_sizes costs a call of fstatat(2) for each file.
 * 0, -ENOMEM, or -errno of the store's own folder (-ENOENT, -EACCES, -ENOTDIR). Other folders that cannot be
 * read are left out. */
int store_list_read(struct store_list *list, const char *store, const char *service, bool with_sizes);

/* The same of an open folder, which stays open. */
int store_list_read_at(struct store_list *list, int store_fd, const char *service, bool with_sizes);

/* "redis/2026-11-22/101500.4711.heap.pb.gz": the path of a file in the store. 0 or -ENAMETOOLONG. */
int store_list_path(
    const struct store_list *list, const struct store_file *file, char *path, size_t path_bytes);

/* Files of a service: [*first, *first + the returned number). 0 if there is no such service. */
size_t store_list_service(const struct store_list *list, const char *service, size_t *first);

#endif
