/* SPDX-License-Identifier: Apache-2.0 */
#include "serve/legacy_text.h"

#include "pprof/profile/profile.h"
#include "pprof/profile/sample_types.h"
#include "pprof/text/utf8.h"

#include <inttypes.h>
#include <string.h>

/* The columns: objects and bytes in use, objects and bytes ever allocated. */
static bool find_columns(const struct profile *profile, size_t columns[4])
{
	static const enum sample_type types[4] = {SAMPLE_TYPE_INUSE_OBJECTS, SAMPLE_TYPE_INUSE_SPACE,
	    SAMPLE_TYPE_ALLOC_OBJECTS, SAMPLE_TYPE_ALLOC_SPACE};

	for (size_t i = 0; i < 4; i++) {
		columns[i] = sample_type_find(profile, types[i]);
		if (columns[i] == SIZE_MAX)
			return false;
	}
	return true;
}

static void write_name(FILE *out, const char *name)
{
	while (*name)
		name = utf8_put(out, name, '?');
}

/* Return addresses as they are on the stack: readers subtract one, which the profile has done already. */
static void write_addresses(FILE *out, const struct profile *profile, const struct profile_sample *sample)
{
	for (size_t i = 0; i < sample->depth; i++)
		fprintf(out, " 0x%" PRIx64, profile_location(profile, sample->locations[i]).address + 1);
	putc('\n', out);
}

static void write_frames(FILE *out, const struct profile *profile, const struct profile_sample *sample)
{
	for (size_t i = 0; i < sample->depth; i++) {
		struct profile_location location = profile_location(profile, sample->locations[i]);

		for (size_t line = 0; line < location.line_count; line++) {
			struct profile_function function =
			    profile_function(profile, location.lines[line].function);

			fprintf(out, "#\t0x%" PRIx64 "\t", location.address);
			write_name(out, function.name);
			putc('\t', out);
			write_name(out, function.filename);
			fprintf(out, ":%" PRId64 "\n", location.lines[line].line);
		}
	}
	putc('\n', out);
}

static void write_mappings(FILE *out, const struct profile *profile)
{
	fputs("MAPPED_LIBRARIES:\n", out);
	for (uint32_t id = 1; id <= profile_mapping_count(profile); id++) {
		struct profile_mapping mapping = profile_mapping(profile, id);

		fprintf(out, "%" PRIx64 "-%" PRIx64 " r-xp %08" PRIx64 " 00:00 0 ", mapping.start,
		    mapping.limit, mapping.file_offset);
		write_name(out, mapping.filename);
		putc('\n', out);
	}
}

static int64_t add(int64_t a, int64_t b)
{
	int64_t sum;

	return __builtin_add_overflow(a, b, &sum) ? a < 0 ? INT64_MIN : INT64_MAX : sum;
}

static void write_counts(FILE *out, const int64_t values[4])
{
	fprintf(out, "%" PRId64 ": %" PRId64 " [%" PRId64 ": %" PRId64 "] @", values[0], values[1], values[2],
	    values[3]);
}

bool legacy_text_write(FILE *out, const struct profile *profile)
{
	size_t columns[4], count = profile_sample_count(profile);
	int64_t sums[4] = {0}, values[4];

	if (!find_columns(profile, columns))
		return false;
	for (size_t i = 0; i < count; i++)
		for (size_t c = 0; c < 4; c++)
			sums[c] = add(sums[c], profile_sample(profile, i).values[columns[c]]);
	fputs("heap profile: ", out);
	write_counts(out, sums);
	fputs(" heapprofile\n", out);
	for (size_t i = 0; i < count; i++) {
		struct profile_sample sample = profile_sample(profile, i);

		for (size_t c = 0; c < 4; c++)
			values[c] = sample.values[columns[c]];
		write_counts(out, values);
		write_addresses(out, profile, &sample);
		write_frames(out, profile, &sample);
	}
	write_mappings(out, profile);
	return true;
}

void legacy_text_write_other(FILE *out, const struct profile *profile)
{
	size_t types = profile_sample_type_count(profile);

	for (size_t t = 0; t < types; t++) {
		struct profile_value_type type = profile_sample_type(profile, t);

		fputs(t ? " " : "", out);
		write_name(out, type.type);
		putc('/', out);
		write_name(out, type.unit);
	}
	putc('\n', out);
	for (size_t i = 0; i < profile_sample_count(profile); i++) {
		struct profile_sample sample = profile_sample(profile, i);

		for (size_t t = 0; t < types; t++)
			fprintf(out, "%s%" PRId64, t ? " " : "", sample.values[t]);
		fputs(" @", out);
		write_addresses(out, profile, &sample);
		write_frames(out, profile, &sample);
	}
}
