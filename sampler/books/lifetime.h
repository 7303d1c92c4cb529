/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How long blocks lived: estimates of objects and bytes by class of lifetime, scaled up from the samples like
 * every number here. Live blocks are not included: their ages are lower bounds of their lifetimes
 * (right-censored) and are shown separately.
 */
#ifndef SAMPLER_BOOKS_LIFETIME_H
#define SAMPLER_BOOKS_LIFETIME_H

#include "proto/weight.h"
#include "sampler/intake/tally.h"

#include <stdbool.h>
#include <stdint.h>

enum { LIFETIME_CLASSES = 11 };

/* A lifetime or an age belongs to the first class with a larger bound; the last class has no bound. */
uint32_t lifetime_class(uint64_t ns);
const char *lifetime_class_name(uint32_t class); /* "1ms-10ms": a word without spaces */

struct lifetime {
	double objects[LIFETIME_CLASSES];
	double bytes, temporary_objects, other_thread_objects;
	uint64_t samples;
	struct tally temporary; /* the exact sums of the temporary samples, for alloc_* */
};

struct lifetime_end {
	struct weight weight;
	uint64_t lived_ns;
	bool same_thread; /* freed by the thread that allocated it */
	bool temporary;   /* freed by that thread within temporary_ns */
};

void lifetime_add(struct lifetime *lifetime, const struct lifetime_end *end);

double lifetime_objects(const struct lifetime *lifetime); /* of all classes */

#endif
