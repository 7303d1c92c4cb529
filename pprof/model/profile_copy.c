/* SPDX-License-Identifier: Apache-2.0 */
#include "pprof/model/profile_copy.h"

#include "pprof/model/profile.h"

void profile_copy_header(struct profile *to, const struct profile *from)
{
	struct profile_value_type period = profile_period_type(from);

	for (size_t i = 0; i < profile_sample_type_count(from); i++)
		profile_add_sample_type(
		    to, profile_sample_type(from, i).type, profile_sample_type(from, i).unit);
	profile_set_default_sample_type(to, profile_default_sample_type(from));
	profile_set_period(to, period.type, period.unit, profile_period(from));
	profile_set_time(to, profile_time_ns(from), profile_duration_ns(from));
	for (size_t i = 0; i < profile_comment_count(from); i++)
		profile_add_comment(to, profile_comment(from, i));
	profile_set_drop_frames(to, profile_drop_frames(from));
	profile_set_keep_frames(to, profile_keep_frames(from));
}

void profile_copy_functions(struct profile *to, const struct profile *from)
{
	for (uint32_t id = 1; id <= profile_mapping_count(from); id++) {
		struct profile_mapping mapping = profile_mapping(from, id);

		profile_add_mapping(to, &mapping);
	}
	for (uint32_t id = 1; id <= profile_function_count(from); id++) {
		struct profile_function function = profile_function(from, id);

		profile_add_function(to, &function);
	}
}

void profile_copy_tables(struct profile *to, const struct profile *from)
{
	profile_copy_functions(to, from);
	for (uint32_t id = 1; id <= profile_location_count(from); id++) {
		struct profile_location location = profile_location(from, id);

		profile_add_location(to, &location);
	}
}
