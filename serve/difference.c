/* SPDX-License-Identifier: Apache-2.0 */
#include "serve/difference.h"

#include "pprof/analysis/merge.h"
#include "pprof/profile/profile.h"
#include "pprof/profile/profile_copy.h"
#include "pprof/profile/sample_types.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum { TYPES_MAX = 256 };

/* By which each value is multiplied: -1, 0 or 1. */
struct factors {
	int of[TYPES_MAX];
	const int64_t *values; /* NULL, or what they are instead: samples by types */
};

static struct factors factors_all(int factor)
{
	struct factors factors = {.values = NULL};

	for (size_t i = 0; i < TYPES_MAX; i++)
		factors.of[i] = factor;
	return factors;
}

static bool is_total(const struct profile *profile, size_t type)
{
	return sample_type_is_total(profile_sample_type(profile, type).type);
}

static int64_t times(int64_t value, int factor)
{
	if (factor >= 0)
		return factor ? value : 0;
	return value == INT64_MIN ? INT64_MAX : -value;
}

static int add_samples(struct profile *to, const struct profile *from, const struct factors *factors)
{
	size_t types = profile_sample_type_count(from), room = 0;
	int64_t values[TYPES_MAX];
	struct profile_label *labels = NULL;
	int err = 0;

	for (size_t i = 0; i < profile_sample_count(from) && !err; i++) {
		struct profile_sample sample = profile_sample(from, i);

		if (sample.label_count > room) {
			struct profile_label *grown =
			    reallocarray(labels, sample.label_count, sizeof(*labels));

			if (!grown) {
				err = -ENOMEM;
				break;
			}
			labels = grown;
			room = sample.label_count;
		}
		for (size_t j = 0; j < sample.label_count; j++)
			labels[j] = profile_sample_label(from, i, j);
		for (size_t t = 0; t < types; t++)
			values[t] = factors->values ? factors->values[i * types + t]
			                            : times(sample.values[t], factors->of[t]);
		err = profile_add_sample(
		    to, sample.locations, sample.depth, values, labels, sample.label_count);
	}
	free(labels);
	return err;
}

static int copy(const struct profile *from, const struct factors *factors, struct profile **out)
{
	struct profile *to = profile_new();
	int err = to ? 0 : -ENOMEM;

	if (!err && profile_sample_type_count(from) > TYPES_MAX)
		err = -EOVERFLOW;
	if (!err) {
		profile_copy_header(to, from);
		profile_copy_tables(to, from);
		err = profile_error(to);
	}
	if (!err)
		err = add_samples(to, from, factors);
	if (err) {
		profile_free(to);
		return err;
	}
	profile_compute_mapping_flags(to);
	*out = to;
	return 0;
}

int difference_none(struct profile *profile, const char *default_type, struct profile **out)
{
	struct factors factors = factors_all(1);
	int err = copy(profile, &factors, out);

	if (!err)
		profile_set_default_sample_type(*out, default_type);
	return err;
}

static int subtract(struct profile *first, struct profile *last, bool totals_only, struct profile **out)
{
	struct factors factors = factors_all(-1);
	struct profile *negative, *pair[2] = {last};
	size_t culprit;
	int err;

	for (size_t t = 0; totals_only && t < profile_sample_type_count(first) && t < TYPES_MAX; t++)
		factors.of[t] = is_total(first, t) ? -1 : 0;
	err = copy(first, &factors, &negative);
	if (err)
		return err;
	pair[1] = negative;
	err = merge_profiles(pair, 2, false, out, &culprit);
	profile_free(negative);
	return err;
}

/* ---- totals that have fallen */

/* The samples of a profile in the order of their stacks. */
struct by_stack {
	const struct profile *profile;
	size_t *samples, count;
	int64_t *values; /* samples by types */
	size_t types;
};

static int compare_stacks(const void *left, const void *right, void *context)
{
	const struct by_stack *s = context;
	const struct profile_sample a = profile_sample(s->profile, *(const size_t *)left),
	                            b = profile_sample(s->profile, *(const size_t *)right);

	if (a.depth != b.depth)
		return a.depth < b.depth ? -1 : 1;
	return a.depth ? memcmp(a.locations, b.locations, a.depth * sizeof(*a.locations)) : 0;
}

/* Is its first frame one of ours that stands for others, `[lost stack]`? */
static bool is_nameless(const struct profile *profile, size_t index)
{
	struct profile_sample sample = profile_sample(profile, index);
	uint32_t mapping = sample.depth ? profile_location(profile, sample.locations[0]).mapping : 0;

	return mapping && strcmp(profile_mapping(profile, mapping).filename, "[heaptap]") == 0;
}

/* Takes from samples that have grown. Returns what is left to take. */
static int64_t take(struct by_stack *s, size_t first, size_t end, size_t type, int64_t fallen, bool nameless)
{
	for (size_t i = first; i < end && fallen > 0; i++) {
		int64_t *value = &s->values[s->samples[i] * s->types + type], taken;

		if (*value <= 0 || (nameless && !is_nameless(s->profile, s->samples[i])))
			continue;
		taken = *value < fallen ? *value : fallen;
		*value -= taken;
		fallen -= taken;
	}
	return fallen;
}

static int64_t add_saturating(int64_t a, int64_t b)
{
	return b > INT64_MAX - a ? INT64_MAX : a + b;
}

/* Of the samples of one stack (their other labels may have changed) what has fallen becomes 0, and is taken
 * from the rest of them. Returns what they do not have. */
static int64_t settle_stack(struct by_stack *s, size_t first, size_t end, size_t type)
{
	int64_t fallen = 0;

	for (size_t i = first; i < end; i++) {
		int64_t *value = &s->values[s->samples[i] * s->types + type];

		if (*value >= 0)
			continue;
		fallen = add_saturating(fallen, times(*value, -1));
		*value = 0;
	}
	return take(s, first, end, type, fallen, false);
}

static void settle(struct by_stack *s, size_t type)
{
	int64_t fallen = 0;

	for (size_t first = 0, end; first < s->count; first = end) {
		for (end = first + 1;
		     end < s->count && !compare_stacks(&s->samples[first], &s->samples[end], s);)
			end++;
		fallen = add_saturating(fallen, settle_stack(s, first, end, type));
	}
	fallen = take(s, 0, s->count, type, fallen, true);
	(void)take(s, 0, s->count, type, fallen, false);
}

/*
 * What counts from the process' start never falls; but the stack that it is counted under may be another,
 * as after a restart of the daemon, which knows no stack of what was freed before. What has fallen under
 * some stacks is taken from others, the nameless first, so that their sum is what the process has allocated.
 */
static int settle_totals(struct profile **profile)
{
	struct by_stack s = {.profile = *profile,
	    .count = profile_sample_count(*profile),
	    .types = profile_sample_type_count(*profile)};
	struct factors factors = factors_all(1);
	struct profile *settled;
	int err = -ENOMEM;

	s.samples = calloc(s.count + 1, sizeof(*s.samples));
	s.values = calloc(s.count * s.types + 1, sizeof(*s.values));
	factors.values = s.values;
	if (s.samples && s.values) {
		for (size_t i = 0; i < s.count; i++) {
			s.samples[i] = i;
			memcpy(s.values + i * s.types, profile_sample(*profile, i).values,
			    s.types * sizeof(*s.values));
		}
		qsort_r(s.samples, s.count, sizeof(*s.samples), compare_stacks, &s);
		for (size_t t = 0; t < s.types; t++)
			if (is_total(*profile, t))
				settle(&s, t);
		err = copy(*profile, &factors, &settled);
	}
	free(s.samples);
	free(s.values);
	if (err)
		return err;
	profile_free(*profile);
	*profile = settled;
	return 0;
}

/* ---- both */

int difference_make(
    struct profile *first, struct profile *last, bool totals_only, bool unknown, struct profile **out)
{
	struct factors factors = factors_all(1);
	int64_t began_ns = first ? profile_time_ns(first) : 0, time_ns = profile_time_ns(last);
	int err;

	for (size_t t = 0; unknown && t < profile_sample_type_count(last) && t < TYPES_MAX; t++)
		factors.of[t] = is_total(last, t) ? 0 : 1;
	err = first && !unknown ? subtract(first, last, totals_only, out) : copy(last, &factors, out);
	if (!err && first && !unknown && totals_only) {
		err = settle_totals(out);
		if (err)
			profile_free(*out);
	}
	if (err)
		return err;
	/* A duration says that it is a difference; 0 would say the opposite. */
	profile_set_time(*out, time_ns, began_ns && time_ns > began_ns ? time_ns - began_ns : 1);
	profile_set_default_sample_type(*out, profile_default_sample_type(last));
	err = profile_error(*out);
	if (err)
		profile_free(*out);
	return err;
}
