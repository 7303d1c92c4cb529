/* SPDX-License-Identifier: Apache-2.0 */
#include "pprof/analysis/stack_key.h"

#include "pprof/model/profile.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* The constants are FNV's of 64 bits; the end mixes as MurmurHash3's finalizer does, so that all bits
 * count. */
uint64_t stack_key_mix(uint64_t hash, const void *bytes, size_t length)
{
	const unsigned char *at = bytes;

	hash ^= UINT64_C(0xcbf29ce484222325);
	for (size_t i = 0; i < length; i++)
		hash = (hash ^ at[i]) * UINT64_C(0x100000001b3);
	hash ^= hash >> 33;
	hash *= UINT64_C(0xff51afd7ed558ccd);
	return hash ^ hash >> 33;
}

static uint64_t mix_text(uint64_t hash, const char *text)
{
	return stack_key_mix(hash, text, strlen(text) + 1);
}

static uint64_t mix_number(uint64_t hash, uint64_t number)
{
	return stack_key_mix(hash, &number, sizeof(number));
}

static struct profile_mapping mapping_of(
    const struct profile *profile, const struct profile_location *location)
{
	return location->mapping ? profile_mapping(profile, location->mapping)
	                         : (struct profile_mapping){.filename = "", .build_id = ""};
}

static bool is_in_file(const struct profile_mapping *mapping, const struct profile_location *location)
{
	return *mapping->filename == '/' && location->address >= mapping->start;
}

bool stack_key_is_named(const struct profile *profile, uint32_t id)
{
	const struct profile_location location = profile_location(profile, id);
	const struct profile_mapping mapping = mapping_of(profile, &location);

	return !is_in_file(&mapping, &location) && location.line_count;
}

static uint64_t location_key(const struct profile *profile, uint32_t id)
{
	const struct profile_location location = profile_location(profile, id);
	const struct profile_mapping mapping = mapping_of(profile, &location);
	uint64_t key = 0;

	if (is_in_file(&mapping, &location)) {
		key = mix_text(mix_text(key, mapping.filename), mapping.build_id);
		return mix_number(key, location.address - mapping.start + mapping.file_offset);
	}
	if (!location.line_count)
		return mix_number(key, location.address);
	for (size_t i = 0; i < location.line_count; i++) {
		struct profile_function function = profile_function(profile, location.lines[i].function);

		key = mix_text(mix_text(key, function.name), function.filename);
	}
	return key;
}

int stack_keys_init(struct stack_keys *keys, const struct profile *profile)
{
	uint32_t count = profile_location_count(profile);

	keys->profile = profile;
	keys->locations = malloc(((size_t)count + 1) * sizeof(*keys->locations));
	if (!keys->locations)
		return -ENOMEM;
	for (uint32_t id = 1; id <= count; id++)
		keys->locations[id] = location_key(profile, id);
	return 0;
}

void stack_keys_fini(struct stack_keys *keys)
{
	free(keys->locations);
	keys->locations = NULL;
}

uint64_t stack_key_without_labels(const struct stack_keys *keys, size_t index)
{
	struct profile_sample sample = profile_sample(keys->profile, index);
	uint64_t key = sample.depth;

	for (size_t i = 0; i < sample.depth; i++)
		key = mix_number(key, keys->locations[sample.locations[i]]);
	return key;
}

/* Labels are added up, not chained: their order means nothing. */
static uint64_t label_key(struct profile_label label)
{
	uint64_t key = mix_text(1, label.key);

	return label.str ? mix_text(key, label.str)
	                 : mix_number(mix_text(key, label.unit), (uint64_t)label.num);
}

bool stack_key_lasts(const struct profile_label *label)
{
	return strcmp(label->key, label->str ? "age" : "bytes") != 0;
}

uint64_t stack_key_lasting(const struct stack_keys *keys, size_t sample)
{
	uint64_t key = stack_key_without_labels(keys, sample);
	size_t count = profile_sample(keys->profile, sample).label_count;

	for (size_t i = 0; i < count; i++) {
		struct profile_label label = profile_sample_label(keys->profile, sample, i);

		if (stack_key_lasts(&label))
			key += label_key(label);
	}
	return key;
}

uint64_t stack_key_without_numbers(const struct stack_keys *keys, size_t sample)
{
	uint64_t key = stack_key_without_labels(keys, sample);
	size_t count = profile_sample(keys->profile, sample).label_count;

	for (size_t i = 0; i < count; i++) {
		struct profile_label label = profile_sample_label(keys->profile, sample, i);

		if (label.str)
			key += label_key(label);
	}
	return key;
}
