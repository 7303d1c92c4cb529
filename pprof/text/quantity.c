/* SPDX-License-Identifier: Apache-2.0 */
#include "pprof/text/quantity.h"

#include <errno.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

/* Digits, then one of the suffixes or none. */
int quantity_number(const char *text, uint64_t *number, const char **suffix)
{
	char *end;

	if (*text < '0' || *text > '9')
		return -EINVAL;
	errno = 0;
	*number = strtoull(text, &end, 10);
	if (errno)
		return -EINVAL;
	*suffix = end;
	return 0;
}

int quantity_bytes(const char *text, uint64_t least, uint64_t most, uint64_t *bytes)
{
	static const char suffixes[] = "KMG";
	const char *suffix, *found;
	unsigned int shift = 0;

	if (quantity_number(text, bytes, &suffix))
		return -EINVAL;
	if (*suffix) {
		found = strchr(suffixes, *suffix >= 'a' ? *suffix - 'a' + 'A' : *suffix);
		if (!found || suffix[1])
			return -EINVAL;
		shift = 10 * (unsigned int)(found - suffixes + 1);
	}
	if (*bytes > UINT64_MAX >> shift)
		return -EINVAL;
	*bytes <<= shift;
	return *bytes >= least && *bytes <= most ? 0 : -EINVAL;
}

int quantity_time(const char *text, uint64_t least_ns, uint64_t most_ns, uint64_t *time_ns)
{
	static const struct {
		const char *name;
		uint64_t unit_ns;
	} units[] = {
	    {"ms", UINT64_C(1000000)},
	    {"s", UINT64_C(1000000000)},
	    {"m", UINT64_C(60000000000)},
	    {"h", UINT64_C(3600000000000)},
	};
	const char *suffix;

	if (quantity_number(text, time_ns, &suffix))
		return -EINVAL;
	if (*time_ns == 0 && !*suffix)
		return 0;
	for (size_t i = 0; i < sizeof(units) / sizeof(units[0]); i++) {
		if (strcmp(units[i].name, suffix) != 0)
			continue;
		if (*time_ns > most_ns / units[i].unit_ns)
			return -EINVAL;
		*time_ns *= units[i].unit_ns;
		return *time_ns == 0 || *time_ns >= least_ns ? 0 : -EINVAL;
	}
	return -EINVAL;
}

static int range_split(const char *value, char *least, char *most, size_t bytes)
{
	const char *colon = strchr(value, ':');
	size_t length = colon ? (size_t)(colon - value) : strlen(value);

	if (length >= bytes || (colon && strlen(colon + 1) >= bytes) || !*value || strcmp(value, ":") == 0)
		return -EINVAL;
	memcpy(least, value, length);
	least[length] = '\0';
	strcpy(most, colon ? colon + 1 : least);
	return 0;
}

static int range_parse(const char *text, uint64_t *least, uint64_t *most,
    int (*parse)(const char *text, uint64_t least, uint64_t most, uint64_t *value))
{
	char from[32], to[32];

	*least = 0;
	*most = UINT64_MAX;
	if (range_split(text, from, to, sizeof(from)) || (*from && parse(from, 0, INT64_MAX, least)) ||
	    (*to && parse(to, 0, INT64_MAX, most)))
		return -EINVAL;
	return *least <= *most ? 0 : -EINVAL;
}

int quantity_bytes_range(const char *text, uint64_t *least, uint64_t *most)
{
	return range_parse(text, least, most, quantity_bytes);
}

int quantity_time_range(const char *text, uint64_t *least_ns, uint64_t *most_ns)
{
	return range_parse(text, least_ns, most_ns, quantity_time);
}
