/* SPDX-License-Identifier: Apache-2.0 */
/* The formats of other tools in which a profile can be written: a new one is a file beside this and a row. */
#ifndef PPROF_EXPORT_FORMAT_H
#define PPROF_EXPORT_FORMAT_H

#include "pprof/export/choice.h"

#include <stdio.h>

enum export_needs {
	EXPORT_BYTES_ONLY = 1 << 0, /* knows amounts of memory and nothing else */
	EXPORT_HEAP_ONLY = 1 << 1,  /* needs what is in use beside what was allocated */
};

struct export_format {
	const char *name;
	/* 0, -ENOMEM, -EFBIG (more than the traces may take) or -EOVERFLOW (more than the format can say) */
	int (*write)(FILE *out, const struct traces *traces, const struct export_choice *choice);
	unsigned int needs; /* enum export_needs */
};

extern const struct export_format export_formats[];

/* The names in the same order, NULL at the end: what --format allows. */
extern const char *const export_format_names[];

#endif
