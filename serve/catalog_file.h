/* SPDX-License-Identifier: Apache-2.0 */
/* A profile file that was given: what it is of, read once and again when it has changed. */
#ifndef SERVE_CATALOG_FILE_H
#define SERVE_CATALOG_FILE_H

#include "pprof/profile/origin.h"
#include "serve/api_point.h"
#include "serve/blob.h"

#include <stdbool.h>
#include <stdint.h>

enum { CATALOG_FILE_MEMORY = 512 << 20 /* that one profile may take */ };

struct catalog_file {
	uint64_t number, bytes;
	int64_t mtime_ns;
	char *path;
	enum { CATALOG_FILE_UNREAD, CATALOG_FILE_BEING_READ, CATALOG_FILE_READ, CATALOG_FILE_BAD } state;
	bool there; /* found by the last scan */
	/* of its origin */
	enum origin_kind kind;
	pid_t pid;
	char program[129], name[129], service[129], host[65], session[64], event[64], cause[96];
	int64_t session_ns, start_ns, time_ns, duration_ns;
	struct api_point point; /* time_ns 0: it is none */
};

/* Reads the bytes of a file. 0 or -errno: it is no profile. */
int catalog_file_read(struct catalog_file *file, const struct blob *bytes);
void catalog_file_free(struct catalog_file *file);

/* "live", "peak", "delta", or its event. */
const char *catalog_file_kind(const struct catalog_file *file);

/* Is it a state of a heap, one after the other in time? The first says so of one that is being read. */
bool catalog_file_is_heap(const struct catalog_file *file);
bool catalog_file_is_state(const struct catalog_file *file);

/* The state of its process' end. */
bool catalog_file_is_last(const struct catalog_file *file);

#endif
