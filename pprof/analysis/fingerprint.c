/* SPDX-License-Identifier: Apache-2.0 */
#include "pprof/analysis/fingerprint.h"

#include "pprof/profile/profile.h"
#include "pprof/table/index.h"

#include <string.h>

/* A hostile profile has one very long text in a million places: of each, so much is looked at. */
enum { TEXT_BYTES = 128 };

static uint64_t mix_text(uint64_t hash, const char *text)
{
	return index_mix_bytes(hash, text, strnlen(text, TEXT_BYTES));
}

static uint64_t mix_type(uint64_t hash, struct profile_value_type type)
{
	return mix_text(mix_text(hash, type.type), type.unit);
}

static uint64_t mix_header(uint64_t hash, const struct profile *p)
{
	hash = index_mix(hash, (uint64_t)profile_time_ns(p));
	hash = index_mix(hash, (uint64_t)profile_duration_ns(p));
	hash = index_mix(hash, (uint64_t)profile_period(p));
	hash = mix_type(hash, profile_period_type(p));
	hash = index_mix(hash, profile_sample_type_count(p));
	for (size_t i = 0; i < profile_sample_type_count(p); i++)
		hash = mix_type(hash, profile_sample_type(p, i));
	hash = index_mix(hash, profile_comment_count(p));
	for (size_t i = 0; i < profile_comment_count(p); i++)
		hash = mix_text(hash, profile_comment(p, i));
	return hash;
}

static uint64_t mix_location(uint64_t hash, const struct profile *p, uint32_t id)
{
	struct profile_location location = profile_location(p, id);

	hash = index_mix(hash, location.address);
	if (location.address || !location.line_count)
		return hash;
	hash = index_mix(hash, (uint64_t)location.lines[0].line);
	return mix_text(hash, profile_function(p, location.lines[0].function).name);
}

static uint64_t sample_hash(const struct profile *p, size_t index)
{
	const struct profile_sample sample = profile_sample(p, index);
	uint64_t hash = index_mix(index_seed(), sample.depth);

	for (size_t i = 0; i < sample.depth; i++)
		hash = mix_location(hash, p, sample.locations[i]);
	for (size_t i = 0; i < profile_sample_type_count(p); i++)
		hash = index_mix(hash, (uint64_t)sample.values[i]);
	for (size_t i = 0; i < sample.label_count; i++) {
		struct profile_label label = profile_sample_label(p, index, i);

		hash = mix_text(mix_text(hash, label.key), label.str ? label.str : label.unit);
		hash = index_mix(hash, (uint64_t)label.num);
	}
	return hash;
}

/* The order of samples is a writer's choice, and so are samples of nothing: these are not written. */
uint64_t fingerprint_make(const struct profile *p)
{
	uint64_t sum = 0;

	for (size_t i = 0; i < profile_sample_count(p); i++)
		if (!profile_sample_is_zero(p, i))
			sum += sample_hash(p, i);
	return index_mix(mix_header(index_seed(), p), sum);
}

uint64_t fingerprint_text(const char *text)
{
	return mix_text(index_seed(), text);
}

uint64_t fingerprint_names(const struct profile *p)
{
	uint64_t named = 0;

	for (uint32_t id = 1; id <= profile_location_count(p); id++)
		named += profile_location(p, id).line_count > 0;
	return named;
}
