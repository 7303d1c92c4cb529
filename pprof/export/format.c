/* SPDX-License-Identifier: Apache-2.0 */
#include "pprof/export/format.h"

/* clang-format off */
/* name, function, what it needs */
#define FORMATS(X) \
	X(folded, folded_write, 0) \
	X(flamegraph, flamegraph_write, EXPORT_LABELS | EXPORT_SPLIT | EXPORT_ANSWER | EXPORT_FILE) \
	X(speedscope, speedscope_write, EXPORT_FILE) \
	X(json, gprof2dot_write, 0) \
	X(csv, csv_write, 0) \
	X(massif, massif_write, EXPORT_BYTES_ONLY) \
	X(heaptrack, heaptrack_write, EXPORT_HEAP_ONLY | EXPORT_FILE)

/* clang-format on */
#define FORMAT_ROW(name, write, needs)  {#name, write, needs},
#define FORMAT_NAME(name, write, needs) #name,

const struct export_format export_formats[] = {FORMATS(FORMAT_ROW)};
const char *const export_format_names[] = {FORMATS(FORMAT_NAME) NULL};
