/* SPDX-License-Identifier: Apache-2.0 */
#include "sampler/cmd/report/duplicates.h"

#include "pprof/model/profile.h"
#include "pprof/table/index.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* A hostile profile has one very long comment many times: of each, so much is looked at. */
enum { TEXT_BYTES = 128 };

static uint64_t mix_text(uint64_t hash, const char *text)
{
	return index_mix_bytes(hash, text, strnlen(text, TEXT_BYTES));
}

/* Neither the order of samples nor their stacks: they change when names are found. */
static uint64_t measurement_of(const struct profile *p)
{
	uint64_t hash = index_mix(index_seed(), (uint64_t)profile_time_ns(p));

	hash = index_mix(hash, (uint64_t)profile_duration_ns(p));
	hash = index_mix(hash, (uint64_t)profile_period(p));
	for (size_t i = 0; i < profile_comment_count(p); i++)
		hash = mix_text(hash, profile_comment(p, i));
	for (size_t type = 0; type < profile_sample_type_count(p); type++) {
		uint64_t sum = 0;

		for (size_t i = 0; i < profile_sample_count(p); i++)
			sum += (uint64_t)profile_sample(p, i).values[type];
		hash = index_mix(mix_text(hash, profile_sample_type(p, type).type), sum);
	}
	return hash;
}

struct duplicates_facts duplicates_read(const char *path, const struct profile *profile, size_t group)
{
	struct duplicates_facts facts = {.path = path,
	    .measurement = measurement_of(profile),
	    .timed = profile_time_ns(profile) > 0,
	    .group = group};

	for (uint32_t id = 1; id <= profile_location_count(profile); id++)
		facts.names += profile_location(profile, id).line_count > 0;
	return facts;
}

static bool is_same(const struct duplicates_facts *a, const struct duplicates_facts *b)
{
	return a->timed && a->measurement == b->measurement && a->group == b->group;
}

static int compare(const void *left, const void *right)
{
	const struct duplicates_facts *a = *(struct duplicates_facts *const *)left,
	                              *b = *(struct duplicates_facts *const *)right;

	if (a->measurement != b->measurement)
		return a->measurement < b->measurement ? -1 : 1;
	if (a->group != b->group)
		return a->group < b->group ? -1 : 1;
	if (a->names != b->names)
		return a->names > b->names ? -1 : 1;
	return (a > b) - (a < b);
}

int duplicates_find(struct duplicates_facts *const *facts, size_t count)
{
	struct duplicates_facts **sorted = calloc(count + 1, sizeof(struct duplicates_facts *)), *best = NULL;

	if (!sorted)
		return -ENOMEM;
	for (size_t i = 0; i < count; i++)
		sorted[i] = facts[i];
	qsort(sorted, count, sizeof(*sorted), compare);
	for (size_t i = 0; i < count; i++) {
		if (best && is_same(sorted[i], best))
			sorted[i]->same = best;
		else
			best = sorted[i];
	}
	free(sorted);
	return 0;
}
