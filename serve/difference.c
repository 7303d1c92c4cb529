/* SPDX-License-Identifier: Apache-2.0 */
#include "serve/difference.h"

#include "pprof/analysis/merge.h"
#include "pprof/analysis/since.h"
#include "pprof/model/origin.h"
#include "pprof/model/profile.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum { TYPES_MAX = 256 };

static int64_t negative_of(int64_t value)
{
	return value == INT64_MIN ? INT64_MAX : -value;
}

/* values: NULL, or what they are instead, samples by sample types. */
static int add_samples(struct profile *to, const struct profile *from, const int64_t *values, bool negative)
{
	size_t types = profile_sample_type_count(from), room = 0;
	int64_t row[TYPES_MAX];
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
		for (size_t t = 0; t < types; t++) {
			row[t] = values ? values[i * types + t] : sample.values[t];
			row[t] = negative ? negative_of(row[t]) : row[t];
		}
		err = profile_add_sample(to, sample.locations, sample.depth, row, labels, sample.label_count);
	}
	free(labels);
	return err;
}

static int copy(const struct profile *from, const int64_t *values, bool negative, struct profile **out)
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
		err = add_samples(to, from, values, negative);
	if (err) {
		profile_free(to);
		return err;
	}
	profile_compute_mapping_flags(to);
	*out = to;
	return 0;
}

/* Of all values, which may become negative. */
static int subtract(struct profile *first, struct profile *last, struct profile **out)
{
	struct profile *negative, *pair[2] = {last};
	size_t culprit;
	int err = copy(first, NULL, true, &negative);

	if (err)
		return err;
	pair[1] = negative;
	err = merge_profiles(pair, 2, false, out, &culprit);
	profile_free(negative);
	return err;
}

static int make_since(const struct since *since, const struct profile *last, struct profile **out)
{
	struct origin origin;
	int64_t fallen, *values;
	int err;

	origin_read(&origin, last);
	values = since_values(since, last, &origin, &fallen);
	err = values ? copy(last, values, false, out) : -ENOMEM;
	free(values);
	return err;
}

int difference_make(
    struct profile *first, struct profile *last, bool totals_only, bool unknown, struct profile **out)
{
	const struct since since = {.first = first, .unknown = unknown};
	int64_t began_ns = first ? profile_time_ns(first) : 0, time_ns = profile_time_ns(last);
	int err = first && !totals_only ? subtract(first, last, out) : make_since(&since, last, out);

	if (err)
		return err;
	/* A duration above 0 says that the profile is a difference. */
	profile_set_time(*out, time_ns, began_ns && time_ns > began_ns ? time_ns - began_ns : 1);
	profile_set_default_sample_type(*out, profile_default_sample_type(last));
	err = profile_error(*out);
	if (err)
		profile_free(*out);
	return err;
}
