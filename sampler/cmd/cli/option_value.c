/* SPDX-License-Identifier: Apache-2.0 */
#include "sampler/cmd/cli/option_value.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

int option_value_choice(const char *const *choices, const char *value)
{
	for (int i = 0; choices[i]; i++) {
		if (strcmp(choices[i], value) == 0)
			return i;
	}
	return -EINVAL;
}

bool option_value_is_name(const char *text)
{
	static const char letters[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";
	const size_t first = strspn(text, letters);
	const char *rest = text + first;

	while (first && *rest && (strchr(letters, *rest) || strchr("0123456789._+-", *rest)))
		rest++;
	return first && !*rest;
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

int option_value_bytes_range(const char *text, struct option_range *range)
{
	range->given = true;
	return quantity_bytes_range(text, &range->min, &range->max);
}

int option_value_time_range(const char *text, struct option_range *range)
{
	range->given = true;
	return quantity_time_range(text, &range->min, &range->max);
}
