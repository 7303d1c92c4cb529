/* SPDX-License-Identifier: Apache-2.0 */
#include "pprof/analysis/grouping.h"

#include "pprof/analysis/filter.h"
#include "pprof/model/origin.h"
#include "pprof/model/profile.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

static void thread_name(const struct profile *profile, size_t sample, const char *name, char *text)
{
	struct profile_label id;
	bool numbered = filter_label(profile, sample, "thread_id", &id) && !id.str;

	if (name && numbered)
		snprintf(text, GROUPING_TEXT_BYTES, "%.256s (%" PRId64 ")", name, id.num);
	else if (name)
		snprintf(text, GROUPING_TEXT_BYTES, "%.256s", name);
	else if (numbered)
		snprintf(text, GROUPING_TEXT_BYTES, "thread %" PRId64, id.num);
	else
		strcpy(text, "[no thread known]");
}

static void process_name(const struct profile *profile, char *text)
{
	struct origin origin;

	origin_read(&origin, profile);
	if (!*origin.name)
		strcpy(origin.name, "unknown program");
	if (origin.pid)
		snprintf(text, GROUPING_TEXT_BYTES, "%s (%d)", origin.name, (int)origin.pid);
	else
		snprintf(text, GROUPING_TEXT_BYTES, "%s", origin.name);
}

/* The label is the most that a block of the class has. */
static void size_name(const struct profile *profile, size_t sample, char *text)
{
	static const char *const units[] = {"B", "KiB", "MiB", "GiB", "TiB"};
	struct profile_label label;
	uint64_t bytes;
	size_t unit = 0;

	if (!filter_label(profile, sample, "size", &label) || label.str || label.num <= 0) {
		strcpy(text, "[no size known]");
		return;
	}
	bytes = (uint64_t)label.num;
	for (; bytes >= 1024 && bytes % 1024 == 0 && unit + 1 < sizeof(units) / sizeof(*units); unit++)
		bytes /= 1024;
	snprintf(text, GROUPING_TEXT_BYTES, "up to %" PRIu64 " %s", bytes, units[unit]);
}

void grouping_name(enum grouping grouping, const struct profile *profile, size_t sample, const char *thread,
    char text[GROUPING_TEXT_BYTES])
{
	struct profile_label label;

	if (grouping == GROUP_THREAD)
		thread_name(profile, sample, thread, text);
	else if (grouping == GROUP_PROCESS)
		process_name(profile, text);
	else if (grouping == GROUP_SIZE)
		size_name(profile, sample, text);
	else if (grouping == GROUP_LIFETIME)
		snprintf(text, GROUPING_TEXT_BYTES, "%.256s",
		    filter_label(profile, sample, "lifetime", &label) && label.str ? label.str
		                                                                   : "[not temporary]");
	else if (filter_label(profile, sample, "age", &label) && label.str)
		snprintf(text, GROUPING_TEXT_BYTES, "%.256s", label.str);
	else
		strcpy(text, "[freed]"); /* only live blocks have an age */
}

const char *grouping_missing_label(enum grouping grouping, const struct profile *profile)
{
	static const char *const labels[] = {[GROUP_THREAD] = "thread",
	    [GROUP_SIZE] = "size",
	    [GROUP_AGE] = "age",
	    [GROUP_LIFETIME] = "lifetime"};
	const char *label = grouping <= GROUP_LIFETIME ? labels[grouping] : NULL;

	if (!label || !profile_sample_count(profile) || filter_label_exists(profile, label))
		return NULL;
	return grouping == GROUP_THREAD &&
	        (filter_label_exists(profile, "thread_name") || filter_label_exists(profile, "thread_id"))
	    ? NULL
	    : label;
}
