/* SPDX-License-Identifier: Apache-2.0 */
/* The export formats. A new one is a file beside this one, its writer in request.h, and a row in format.c. */
#ifndef PPROF_EXPORT_FORMAT_H
#define PPROF_EXPORT_FORMAT_H

#include "pprof/export/request.h"

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
