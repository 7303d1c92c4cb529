/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The sample types of a heap profile, and the measures that tables show of them. The types' order is that of
 * Go's heap profiles, which readers expect.
 *
 * What to touch for a new type:
 *   here                               a line of the list of types: check, push and serve know the type by it
 *   sampler/write/heap_snapshot.c      add_row(): its value in a sample
 *   the list of measures below         a line if report --sort, exports and the page shall show it
 *   pprof/page/dom.js                  its title on the page
 */
#ifndef PPROF_MODEL_SAMPLE_TYPES_H
#define PPROF_MODEL_SAMPLE_TYPES_H

#include <stdbool.h>
#include <stddef.h>

/* Constant, name, unit, and whether it counts from the start of the process: such a total never falls, and
 * the difference of two profiles is what came between. What is in use is a state. */
#define SAMPLE_TYPES(TYPE)                                   \
	TYPE(ALLOC_OBJECTS, "alloc_objects", "count", true)  \
	TYPE(ALLOC_SPACE, "alloc_space", "bytes", true)      \
	TYPE(INUSE_OBJECTS, "inuse_objects", "count", false) \
	TYPE(INUSE_SPACE, "inuse_space", "bytes", false)

enum sample_type {
#define SAMPLE_TYPE_CONSTANT(constant, name, unit, is_total) SAMPLE_TYPE_##constant,
	SAMPLE_TYPES(SAMPLE_TYPE_CONSTANT)
#undef SAMPLE_TYPE_CONSTANT
	    SAMPLE_TYPE_COUNT,
	SAMPLE_TYPE_NONE = SAMPLE_TYPE_COUNT
};

extern const struct sample_type_row {
	const char *name, *unit;
	bool is_total;
} sample_types[SAMPLE_TYPE_COUNT];

struct profile;

/* Does this name mean the type? tcmalloc writes `objects` and `space` for what is in use: these names mean
 * inuse_objects and inuse_space, too. */
bool sample_type_is(enum sample_type type, const char *name);

/* Does a type of this name count from the start of the process? */
bool sample_type_is_total(const char *name);

/* The index in a profile of the first sample type whose name means the type (pprof takes the first, too), or
 * SIZE_MAX. */
size_t sample_type_find(const struct profile *profile, enum sample_type type);

/* ---- measures: what a table can show of a profile. A measure is read from a sample type; two are computed.
 * */

/*
 * Constant, the word for --sort, the sample type. The first that a profile has is what its tables show if
 * nothing else is asked for.
 *   FREED      allocations since the recording began that were freed again: alloc_objects less inuse_objects
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
