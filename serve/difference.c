/* SPDX-License-Identifier: Apache-2.0 */
#include "serve/difference.h"

#include "pprof/analysis/merge.h"
#include "pprof/profile/profile.h"
#include "pprof/profile/profile_copy.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum { TYPES_MAX = 256 };

/* By which each value is multiplied: -1, 0 or 1. */
struct factors {
	int of[TYPES_MAX];
};

static struct factors factors_all(int factor)
{
	struct factors factors;

	for (size_t i = 0; i < TYPES_MAX; i++)
		factors.of[i] = factor;
	return factors;
}

static bool is_total(const struct profile *profile, size_t type)
{
	return strncmp(profile_sample_type(profile, type).type, "alloc_", 6) == 0;
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
			values[t] = times(sample.values[t], factors->of[t]);
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

int difference_make(
    struct profile *first, struct profile *last, bool totals_only, bool unknown, struct profile **out)
{
	struct factors factors = factors_all(1);
	int64_t began_ns = first ? profile_time_ns(first) : 0, time_ns = profile_time_ns(last);
	int err;

	for (size_t t = 0; unknown && t < profile_sample_type_count(last) && t < TYPES_MAX; t++)
		factors.of[t] = is_total(last, t) ? 0 : 1;
	err = first && !unknown ? subtract(first, last, totals_only, out) : copy(last, &factors, out);
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
