/* SPDX-License-Identifier: Apache-2.0 */
#include "pprof/analysis/thread_names.h"

#include <stdbool.h>
#include <string.h>

#include "pprof/analysis/filter.h"
#include "pprof/model/origin.h"
#include "pprof/model/profile.h"

static bool read_labels(
    const struct profile *profile, size_t sample, struct profile_label *id, struct profile_label *name)
{
	if (!filter_label(profile, sample, "thread_name", name) || !name->str)
		name->str = NULL;
	return filter_label(profile, sample, "thread_id", id) && !id->str;
}

static uint64_t key_make(const char *session, int64_t tid)
{
	return index_mix(index_mix_bytes(index_seed(), session, strlen(session)), (uint64_t)tid);
}

int thread_names_learn(struct late_names *n, const struct profile *profile)
{
	struct origin origin;
	int err = 0;

	origin_read(&origin, profile);
	for (size_t i = 0; i < profile_sample_count(profile) && !err; i++) {
		struct profile_label id, name;

		if (read_labels(profile, i, &id, &name) && name.str)
			err = late_names_learn(n, key_make(origin.session, id.num), name.str, origin.time_ns);
	}
	return err;
}

const char *thread_names_of(
    const struct late_names *n, const struct profile *profile, const char *session, size_t sample)
{
	struct profile_label id, name;

	if (!read_labels(profile, sample, &id, &name) || name.str)
		return name.str;
	return late_names_find(n, key_make(session, id.num));
}
