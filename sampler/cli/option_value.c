/* SPDX-License-Identifier: Apache-2.0 */
#include "sampler/cli/option_value.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#define ARRAY_COUNT(array) (sizeof(array) / sizeof((array)[0]))

int option_value_choice(const char *const *choices, const char *value)
{
	for (int i = 0; choices[i]; i++) {
		if (strcmp(choices[i], value) == 0)
			return i;
	}
	return -EINVAL;
}

int option_value_count(const char *text, uint64_t least, uint64_t most, uint64_t *count)
{
	const char *suffix;

	if (quantity_number(text, count, &suffix) || *suffix)
		return -EINVAL;
	return *count >= least && *count <= most ? 0 : -EINVAL;
}

int option_value_signal(const char *text, int *number, bool *everywhere)
{
	size_t length = strcspn(text, ":");
	const char *suffix = "";
	uint64_t offset = 0;

	if (text[length] && strcmp(text + length, ":all") != 0)
		return -EINVAL;
	*everywhere = text[length] != '\0';
	if (strncmp(text, "SIG", 3) == 0) {
		text += 3;
		length -= 3;
	}
	if (length == 4 && strncmp(text, "none", length) == 0)
		*number = 0;
	else if (length == 4 && strncmp(text, "USR1", length) == 0)
		*number = SIGUSR1;
	else if (length == 4 && strncmp(text, "USR2", length) == 0)
		*number = SIGUSR2;
	else if (strncmp(text, "RTMIN", 5) == 0)
		*number = SIGRTMIN;
	else
		return -EINVAL;
	if (strncmp(text, "RTMIN", 5) != 0 || length == 5)
		return *number || !*everywhere ? 0 : -EINVAL;
	if (text[5] != '+' || quantity_number(text + 6, &offset, &suffix) || suffix != text + length ||
	    offset > (uint64_t)(SIGRTMAX - SIGRTMIN))
		return -EINVAL;
	*number = SIGRTMIN + (int)offset;
	return 0;
}

int option_value_threshold(const char *text, struct threshold *threshold)
{
	size_t length = strcspn(text, "=");
	int measure = 0;

	while (threshold_names[measure] &&
	    (strlen(threshold_names[measure]) != length ||
	        memcmp(threshold_names[measure], text, length) != 0))
		measure++;
	if (!threshold_names[measure])
		return -EINVAL;
	*threshold = (struct threshold){.measure = (enum threshold_measure)measure};
	if (measure == THRESHOLD_MEMORY_HIGH || !text[length])
		return measure == THRESHOLD_MEMORY_HIGH && !text[length] ? 0 : -EINVAL;
	text += length + 1;
	threshold->growth = *text == '+' || measure == THRESHOLD_ALLOC;
	return quantity_bytes(text + (*text == '+'), 1, INT64_MAX, &threshold->bytes);
}

/* MIN:MAX, either of which may be missing; one value alone is both. */
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

static int range_parse(const char *text, struct option_range *range,
    int (*parse)(const char *text, uint64_t least, uint64_t most, uint64_t *value))
{
	char least[32], most[32];

	*range = (struct option_range){.given = true, .max = UINT64_MAX};
	if (range_split(text, least, most, sizeof(least)) ||
	    (*least && parse(least, 0, INT64_MAX, &range->min)) ||
	    (*most && parse(most, 0, INT64_MAX, &range->max)))
		return -EINVAL;
	return range->min <= range->max ? 0 : -EINVAL;
}

int option_value_bytes_range(const char *text, struct option_range *range)
{
	return range_parse(text, range, quantity_bytes);
}

int option_value_time_range(const char *text, struct option_range *range)
{
	return range_parse(text, range, quantity_time);
}
