/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The blocks that were freed, in numbers scaled up from the samples, and the classes of the ages of live
 * blocks.
 */
#ifndef SAMPLER_BOOKS_LIFETIME_H
#define SAMPLER_BOOKS_LIFETIME_H

#include "proto/weight.h"

#include <stdbool.h>
#include <stdint.h>

enum { LIFETIME_CLASSES = 11 };

/* An age belongs to the first class with a larger bound; the last class has no bound. */
uint32_t lifetime_class(uint64_t ns);
const char *lifetime_class_name(uint32_t class); /* "1ms-10ms": a word without spaces */

struct lifetime {
	double objects, temporary_objects, other_thread_objects;
	uint64_t samples;
};

struct lifetime_end {
	struct weight weight;
	bool same_thread; /* freed by the thread that allocated it */
	bool temporary;   /* freed by that thread within temporary_ns */
};

void lifetime_add(struct lifetime *lifetime, const struct lifetime_end *end);

#endif
