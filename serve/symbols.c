/* SPDX-License-Identifier: Apache-2.0 */
#include "serve/symbols.h"

#include "pprof/profile/profile.h"
#include "pprof/table/array.h"
#include "pprof/text/utf8.h"

#include <errno.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

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

/* Clients ask for the addresses of the profile, or for the return addresses, which are one more. */
static const struct known *find(const struct known *known, size_t count, uint64_t address)
{
	for (uint64_t less = 0; less < 2; less++) {
		size_t at = ARRAY_LOWER_BOUND(known, count, address, address - less);

		if (at < count && known[at].address == address - less)
			return &known[at];
	}
	return NULL;
}

/* As strconv.ParseUint(word, 0, 64): a number of base 16, 8, 2 or 10 by its prefix. 0: none. */
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

int symbols_write(FILE *out, const char *query, const struct profile *profile)
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
