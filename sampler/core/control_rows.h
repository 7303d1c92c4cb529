/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The records of processes in the text of a list (control_list.h), for a program that hands a list on. Of a
 * process only its bytes and its pid are read, of the sampler only where its profiles are. Pure.
 */
#ifndef SAMPLER_CORE_CONTROL_ROWS_H
#define SAMPLER_CORE_CONTROL_ROWS_H

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
	pid_t pid;    /* 0: the record has no pid, or several */
};

/* Where a sampler says that its profiles are: see control_list.h. */
struct control_store {
	const char *path; /* points into the text; "": there are none */
	unsigned int depth;
	int64_t since_unix_ns;
};

/* Reads the sampler's record, which is the first one. */
struct control_store control_rows_store(const struct control_rows *rows);

/* Reads the next record of a process. Returns 1, or 0 at the end. A record that is cut off does not count. */
int control_rows_next(struct control_rows *rows, struct control_row *row);

#endif
