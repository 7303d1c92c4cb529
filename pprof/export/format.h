/* SPDX-License-Identifier: Apache-2.0 */
/* The formats of export. A new one is a writer in format.c, or in a file format_NAME.c beside it, and a row
 * in format.c. */
#ifndef PPROF_EXPORT_FORMAT_H
#define PPROF_EXPORT_FORMAT_H

#include <stdint.h>
#include <stdio.h>

#include "pprof/analysis/traces.h"
#include "pprof/export/answer.h"
#include "pprof/model/origin.h"

/* What a writer gets. Borrows everything. */
struct export_request {
	size_t column;                   /* one profile of the traces */
	bool has_peak;                   /* `peak` has a meaning */
	size_t peak;                     /* column of what was in use at the peak of each process */
	bool peak_is_snapshot;           /* no peak was recorded: `peak` is the largest snapshot */
	enum measure_kind kind;          /* for a format that shows several: the one to show first */
	const char *title;               /* shown to the user: the program, or "heap profile" */
	const struct origin *origin;     /* of the profile; NULL: not told */
	const char *samples;             /* "8234 taken, 2 lost stacks"; "" unknown */
	bool ended;                      /* written when the program ended */
	const struct answer *answer;     /* NULL: none */
	const char *program;             /* for formats that name it; "": unknown */
	size_t series_count;             /* the first so many columns are snapshots of one process */
	const int64_t *time_ns;          /* of each column of the series, in rising order */
	unsigned int threshold_permille; /* share of the total below which a format may combine nodes */
	uint64_t *scale;                 /* output: number of blocks that one block in the file stands for */
};

/*
 * Writes a profile. 0, -ENOMEM, -EFBIG (beyond the traces' max_bytes) or -EOVERFLOW (more than the format can
 * hold).
 *   folded      leaves out stacks without a positive value, since readers expect positive ones
 *   speedscope  leaves out negative values, which it cannot show
 *   csv         sorts by flat of the kind
 *   massif      writes each profile of a series; the kind must count bytes
 */
typedef int export_writer(FILE *out, const struct traces *traces, const struct export_request *request);

/* In files of their own. */
export_writer csv_write, heaptrack_write, massif_write;

enum export_needs {
	EXPORT_BYTES_ONLY = 1 << 0, /* can show sizes in bytes only */
	EXPORT_HEAP_ONLY = 1 << 1,  /* needs both the in-use and the allocated sample types */
	EXPORT_LABELS = 1 << 2,     /* shows short labels beside the full names */
	EXPORT_SPLIT = 1 << 4,      /* tells threads and ages apart, and shows rows under their headings */
	EXPORT_ANSWER = 1 << 5,     /* begins with what is held and what grows */
	EXPORT_FILE = 1 << 3,       /* a browser or another program reads it: never written to a terminal */
};

struct export_format {
	const char *name;
	export_writer *write;
	unsigned int needs; /* enum export_needs */
};

extern const struct export_format export_formats[];

/* The values of --format in the same order, ending with NULL. */
extern const char *const export_format_names[];

#endif
