/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The frames of traces: each function that is shown, or each source line of one, once, numbered from 0. Names
 * are as printed: anonymized if asked for, and never empty.
 */
#ifndef PPROF_ANALYSIS_FRAMES_H
#define PPROF_ANALYSIS_FRAMES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "pprof/analysis/frame_role.h"
#include "pprof/table/index.h"
#include "pprof/table/intern.h"

struct filter;

/* Strings live as long as the table. */
struct frames_row {
	const char *name;   /* never empty: "[libfoo.so]" where no function is known */
	const char *label;  /* what is printed for it: the name or its short form */
	const char *file;   /* "" unknown */
	const char *module; /* path of the file the code is in, "" unknown */
	int64_t line;       /* 0 if unknown, or if functions are distinguished by name only */
	unsigned int marks; /* filter_frame() */
	uint8_t role;       /* enum frame_role */
};

/* short: text/short_name.h. */
enum frames_names {
	FRAMES_FULL,   /* name and label are as in the profile */
	FRAMES_LABELS, /* the label is short */
	FRAMES_SHORT,  /* so is the name: functions that differ in template arguments only are one */
};

struct frames {
	bool lines;     /* distinguish frames by source line too */
	bool anonymize; /* names become hashes that are the same in every run */
	enum frames_names names;
	const struct filter *filter; /* NULL: none */
	struct intern strings;
	struct index index;
	struct frames_row *rows;
	size_t capacity;
	uint32_t count;
};

/* All zero is empty. */
void frames_fini(struct frames *f);

/* Memory that they take. */
static inline size_t frames_bytes(const struct frames *f)
{
	return intern_bytes(&f->strings) + index_bytes(&f->index) + f->capacity * sizeof(*f->rows);
}

/* Takes name, file and module as they are in the profile. 0 with the frame's number, the old one for a frame
 * already there; or -ENOMEM, -EOVERFLOW. */
int frames_add(
    struct frames *f, const char *name, const char *file, const char *module, int64_t line, uint32_t *number);

#endif
