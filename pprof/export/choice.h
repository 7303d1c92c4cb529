/* SPDX-License-Identifier: Apache-2.0 */
/* What of some traces an export format is to write. */
#ifndef PPROF_EXPORT_CHOICE_H
#define PPROF_EXPORT_CHOICE_H

#include "pprof/analysis/traces.h"

#include <stdint.h>

/* Everything is borrowed. */
struct export_choice {
	size_t column;                   /* one profile of the traces */
	enum measure_kind kind;          /* for a format that shows several: the one to show first */
	const char *title;               /* for people: the program, or "heap profile" */
	const char *program;             /* for formats that name it; "": unknown */
	size_t series_count;             /* columns that are states of one process, the first ones */
	const int64_t *time_ns;          /* of each column of the series, rising */
	unsigned int threshold_permille; /* of the total, below which a format may fold */
	uint64_t *scale;                 /* set to how many blocks one block of the file stands for */
};

#endif
