/* SPDX-License-Identifier: Apache-2.0 */
/* What a table can show of a profile. A measure is read from a sample type; two of them are computed. */
#ifndef PPROF_ANALYSIS_MEASURE_H
#define PPROF_ANALYSIS_MEASURE_H

#include "pprof/model/sample_types.h"

/*
 * Constant, the word for --sort, the sample type. The first that a profile has is what its tables show if
 * nothing else is asked for.
 *   FREED      allocations since the recording began that were freed again: those less the objects in use
 *   TEMPORARY  allocations that were freed soon, by the thread that made them: samples with that label
 */
#define MEASURES(MEASURE)                                      \
	MEASURE(INUSE, "inuse", INUSE_SPACE)                   \
	MEASURE(INUSE_OBJECTS, "inuse-objects", INUSE_OBJECTS) \
	MEASURE(ALLOC, "alloc", ALLOC_SPACE)                   \
	MEASURE(OBJECTS, "objects", ALLOC_OBJECTS)             \
	MEASURE(FREED, "freed", ALLOC_OBJECTS)                 \
	MEASURE(TEMPORARY, "temporary", NONE)

enum measure_kind {
#define MEASURE_CONSTANT(constant, word, type) MEASURE_##constant,
	MEASURES(MEASURE_CONSTANT)
#undef MEASURE_CONSTANT
	    MEASURE_OTHER, /* the default sample type of a profile that is not a heap profile */
	MEASURE_COUNT
};

#endif
