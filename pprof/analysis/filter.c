/* SPDX-License-Identifier: Apache-2.0 */
#include "pprof/analysis/filter.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "pprof/model/profile.h"
#include "pprof/text/pattern.h"

static int pattern_open(struct pattern **out, const char *prefix, const char *name, const char *regex,
    char *error, size_t error_bytes)
{
	char why[256];
	int err;

	if (!regex)
		return 0;
	err = pattern_new(regex, 0, out, why, sizeof(why));
	if (err == -EINVAL)
		snprintf(error, error_bytes, "%s%s: '%s' is %s", prefix, name, regex, why);
	else if (err)
		snprintf(error, error_bytes, "not enough memory");
	return err;
}

int filter_open(struct filter *filter, const struct filter_texts *texts, const char *prefix, char *error,
    size_t error_bytes)
{
	const struct {
		struct pattern **pattern;
		const char *name, *regex;
	} rows[] = {{&filter->focus, "focus", texts->focus}, {&filter->ignore, "ignore", texts->ignore},
	    {&filter->module, "module", texts->module}, {&filter->thread, "thread", texts->thread},
	    {&filter->hide, "hide", texts->hide}};
	int err = 0;

	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows) && !err; i++)
		err = pattern_open(rows[i].pattern, prefix, rows[i].name, rows[i].regex, error, error_bytes);
	return err;
}

void filter_close(struct filter *filter)
{
	pattern_free(filter->focus);
	pattern_free(filter->ignore);
	pattern_free(filter->module);
	pattern_free(filter->thread);
	pattern_free(filter->hide);
	memset(filter, 0, sizeof(*filter));
}

unsigned int filter_frame(const struct filter *filter, const char *name, const char *file, const char *module)
{
	unsigned int marks = 0;

	if (filter->focus && (pattern_matches(filter->focus, name) || pattern_matches(filter->focus, file)))
		marks |= FILTER_FOCUS;
	if (filter->ignore &&
	    (pattern_matches(filter->ignore, name) || pattern_matches(filter->ignore, file)))
		marks |= FILTER_IGNORE;
	if (filter->module && pattern_matches(filter->module, module))
		marks |= FILTER_MODULE;
	if (filter->hide && (pattern_matches(filter->hide, name) || pattern_matches(filter->hide, file)))
		marks |= FILTER_HIDE;
	return marks;
}

bool filter_stack(const struct filter *filter, unsigned int marks)
{
	return !(filter->focus && !(marks & FILTER_FOCUS)) && !(marks & FILTER_IGNORE) &&
	    !(filter->module && !(marks & FILTER_MODULE));
}

bool filter_label(const struct profile *profile, size_t sample, const char *key, struct profile_label *found)
{
	size_t count = profile_sample(profile, sample).label_count;

	for (size_t i = 0; i < count; i++) {
		*found = profile_sample_label(profile, sample, i);
		if (strcmp(found->key, key) == 0)
			return true;
	}
	return false;
}

double filter_size(const struct profile *profile, size_t sample)
{
	struct profile_label label;

	return filter_label(profile, sample, "bytes", &label) && !label.str && label.num > 0
	    ? (double)label.num
	    : 0;
}

bool filter_size_fits(const struct filter *filter, const struct filter_block *block)
{
	const bool allocated = block->objects > 0;
	const double objects = allocated ? block->objects : block->inuse_objects,
	             bytes = allocated ? block->bytes : block->inuse_bytes;
	const double size = !(block->size > 0) && objects > 0 ? bytes / objects : block->size;

	return !filter->by_size || (size >= filter->size_min && size <= filter->size_max);
}

/* "1ms-10ms", "1h-": the ranges of ages in the sampler's labels. */
static bool age_part(const char **text, uint64_t *ns)
{
	static const struct {
		const char *name;
		uint64_t ns;
	} units[] = {{"us", 1000}, {"ms", 1000000}, {"s", 1000000000}, {"m", UINT64_C(60000000000)},
	    {"h", UINT64_C(3600000000000)}, {"", 1}};
	char *end;
	size_t length;

	if (**text < '0' || **text > '9')
		return false;
	*ns = strtoull(*text, &end, 10);
	length = strcspn(end, "-");
	for (size_t i = 0; i < sizeof(units) / sizeof(*units); i++) {
		if (strlen(units[i].name) != length || strncmp(end, units[i].name, length) != 0)
			continue;
		if (*ns > UINT64_MAX / units[i].ns)
			return false;
		*ns *= units[i].ns;
		*text = end + length;
		return true;
	}
	return false;
}

static bool age_fits(const struct filter *filter, const char *text)
{
	uint64_t from, to = UINT64_MAX;

	if (!age_part(&text, &from) || *text != '-')
		return false;
	text++;
	if (*text && !age_part(&text, &to))
		return false;
	return from >= filter->age_min_ns && to <= filter->age_max_ns;
}

static bool thread_fits(
    const struct filter *filter, const struct profile *profile, size_t sample, const char *name)
{
	struct profile_label label;
	char number[24];

	if (name && pattern_matches(filter->thread, name))
		return true;
	if (!filter_label(profile, sample, "thread_id", &label))
		return false;
	snprintf(number, sizeof(number), "%" PRId64, label.num);
	return pattern_matches(filter->thread, label.str ? label.str : number);
}

bool filter_labels(
    const struct filter *filter, const struct profile *profile, size_t sample, const char *thread)
{
	struct profile_label label;

	if (filter->thread && !thread_fits(filter, profile, sample, thread))
		return false;
	if (filter->by_age)
		return filter_label(profile, sample, "age", &label) && label.str &&
		    age_fits(filter, label.str);
	return true;
}

bool filter_label_exists(const struct profile *profile, const char *key)
{
	struct profile_label label;

	for (size_t i = 0; i < profile_sample_count(profile); i++)
		if (filter_label(profile, i, key, &label))
			return true;
	return false;
}

const char *filter_missing_label(const struct filter *filter, const struct profile *profile)
{
	if (filter->thread && !filter_label_exists(profile, "thread_name") &&
	    !filter_label_exists(profile, "thread_id"))
		return "thread";
	if (filter->by_age && !filter_label_exists(profile, "age"))
		return "age";
	return NULL;
}
