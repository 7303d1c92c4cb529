/* SPDX-License-Identifier: Apache-2.0 */
/* The part of debug_answer.h that writes text. */
#include "serve/debug_answer.h"

#include "pprof/model/profile.h"
#include "pprof/model/sample_types.h"
#include "pprof/table/array.h"
#include "pprof/text/utf8.h"

#include <errno.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdlib.h>
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

/* Writes return addresses as they are on the stack. The profile has subtracted one, and readers will do so
 * again. */
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

bool debug_answer_write_heap(FILE *out, const struct profile *profile)
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

void debug_answer_write_any(FILE *out, const struct profile *profile)
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

/* ---- symbols */

struct known {
	uint64_t address;
	uint32_t location;
};

static int compare(const void *left, const void *right)
{
	const struct known *a = left, *b = right;

	return a->address < b->address ? -1 : a->address > b->address;
}

static struct known *sort_locations(const struct profile *profile, size_t *count)
{
	uint32_t all = profile ? profile_location_count(profile) : 0;
	struct known *known = malloc((all + 1) * sizeof(*known));

	*count = 0;
	for (uint32_t id = 1; known && id <= all; id++)
		if (profile_location(profile, id).line_count)
			known[(*count)++] = (struct known){profile_location(profile, id).address, id};
	if (known && *count)
		qsort(known, *count, sizeof(*known), compare);
	return known;
}

/* Finds an address of the profile, or the return address, which is one more. Clients ask for both. */
static const struct known *find(const struct known *known, size_t count, uint64_t address)
{
	for (uint64_t less = 0; less < 2; less++) {
		size_t at = ARRAY_LOWER_BOUND(known, count, address, address - less);

		if (at < count && known[at].address == address - less)
			return &known[at];
	}
	return NULL;
}

/* As Go's strconv.ParseUint(word, 0, 64): a number of base 16, 8, 2 or 10, by its prefix. 0 if it is none. */
static uint64_t parse_address(const char *word, size_t length)
{
	static const char digits[] = "0123456789abcdef";
	unsigned int base = 10;
	uint64_t value = 0;

	if (length > 1 && word[0] == '0') {
		char mark = (char)(word[1] | 0x20);

		base = mark == 'x' ? 16 : mark == 'b' ? 2 : 8;
		word += base == 8 && mark != 'o' ? 1 : 2;
		length -= base == 8 && mark != 'o' ? 1 : 2;
	}
	for (size_t i = 0; i < length; i++) {
		char letter = word[i] >= 'A' && word[i] <= 'F' ? (char)(word[i] | 0x20) : word[i];
		const char *digit = letter ? strchr(digits, letter) : NULL;

		if (!digit || (unsigned int)(digit - digits) >= base ||
		    __builtin_mul_overflow(value, base, &value) ||
		    __builtin_add_overflow(value, (uint64_t)(digit - digits), &value))
			return 0;
	}
	return value;
}

static void write_one(FILE *out, uint64_t address, const struct profile *profile, uint32_t location)
{
	struct profile_location found = profile_location(profile, location);
	struct profile_function function =
	    profile_function(profile, found.lines[found.line_count - 1].function);

	fprintf(out, "%#" PRIx64 " ", address);
	for (const char *name = function.name; *name;)
		name = utf8_put(out, name, '?');
	putc('\n', out);
}

int debug_answer_write_symbols(FILE *out, const char *query, const struct profile *profile)
{
	size_t count;
	struct known *known = sort_locations(profile, &count);

	if (!known)
		return -ENOMEM;
	fputs("num_symbols: 1\n", out);
	for (const char *word = query;; word++) {
		size_t length = strcspn(word, "+");
		uint64_t address = parse_address(word, length);
		const struct known *found = address ? find(known, count, address) : NULL;

		if (found)
			write_one(out, address, profile, found->location);
		word += length;
		if (!*word)
			break;
	}
	free(known);
	return 0;
}
