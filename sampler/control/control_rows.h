/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The rows of processes in the text of a list (control_list.h), for who hands a list on: of each its bytes
 * and its process, of the sampler where its profiles are, and nothing else is read. Pure.
 */
#ifndef SAMPLER_CONTROL_CONTROL_ROWS_H
#define SAMPLER_CONTROL_CONTROL_ROWS_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* What is left of the text. */
struct control_rows {
	const char *at, *end;
};

struct control_row {
	const char *text;
	size_t bytes; /* with the empty string that ends it */
	pid_t pid;    /* 0: it does not say one process */
};

/* Where a sampler says that its profiles are; "": nowhere. See control_list.h. */
struct control_store {
	const char *path; /* in the text */
	unsigned int depth;
	int64_t since_unix_ns;
};

/* What the text begins with, if that is a sampler's record. */
struct control_store control_rows_store(const struct control_rows *rows);

/* The next row of a process. Returns 1, or 0 at the end; what is cut off in the middle is no row. */
int control_rows_next(struct control_rows *rows, struct control_row *row);

#endif
