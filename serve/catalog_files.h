/* SPDX-License-Identifier: Apache-2.0 */
/* The profile files of the catalog. The broker finds and opens them; a job reads each file once, and again
 * when the file has changed. */
#ifndef SERVE_CATALOG_FILES_H
#define SERVE_CATALOG_FILES_H

#include "pprof/model/origin.h"
#include "serve/api_facts.h"
#include "serve/blob.h"
#include "serve/broker_client.h"
#include "serve/jobs.h"

#include <stdbool.h>
#include <stdint.h>

enum { CATALOG_FILE_MEMORY = 512 << 20 /* that one profile may take */ };

struct catalog_file {
	uint64_t number, bytes; /* number: see file_list.h */
	int64_t mtime_ns;
	char *path;
	enum { CATALOG_FILE_UNREAD, CATALOG_FILE_BEING_READ, CATALOG_FILE_READ, CATALOG_FILE_BAD } state;
	bool there; /* the last scan has found it */
	/* What the profile says of its origin. */
	enum origin_kind kind;
	pid_t pid;
	char program[129], name[129], service[129], host[65], session[64], event[64], cause[96];
	int64_t session_ns, start_ns, time_ns, duration_ns;
	struct api_point point; /* time_ns 0: the file is no point of a time line */
};

/* "live", "peak", "delta", or the event that the profile is of. */
const char *catalog_file_kind(const struct catalog_file *file);

/* Is the file a state of a heap? A process has one after the other. No while the file is being read. */
bool catalog_file_is_state(const struct catalog_file *file);

/* Is it the state in which its process ended? */
bool catalog_file_is_last(const struct catalog_file *file);

struct catalog_files;

/* finished() is called when a scan is over. It is also called when a scan has taken as long as a request may
 * wait: then the rest is read later. NULL: no memory. */
struct catalog_files *catalog_files_new(
    struct broker_client *broker, struct jobs *jobs, void (*finished)(void *context), void *context);
void catalog_files_free(struct catalog_files *files); /* after the jobs have ended */

/* Begins a scan. False: a scan is under way, or the broker has too much to do. */
bool catalog_files_begin(struct catalog_files *files);

/* To be called about once a second. */
void catalog_files_tend(struct catalog_files *files, uint64_t now_ns);

/* Forgets files that are not there any more. The caller refers to none of them. NULL is fine. */
void catalog_files_drop_gone(struct catalog_files *files);

/* All files, by number. Among them are files that are unread, that are no profile, and that are gone. */
size_t catalog_files_all(const struct catalog_files *scan, struct catalog_file *const **files);

#endif
