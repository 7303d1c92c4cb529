/* SPDX-License-Identifier: Apache-2.0 */
#include "serve/api_query.h"

#include "pprof/text/quantity.h"
#include "pprof/text/text.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

struct reading {
	struct api_query *query;
	api_query_get *get;
	const void *context;
	char *error;
	size_t error_bytes;
};

static const char *value_of(const struct reading *r, const char *name)
{
	const char *value = r->get(r->context, name);

	return value && *value ? value : NULL;
}

static int refuse(const struct reading *r, const char *name, const char *value, const char *allowed)
{
	snprintf(r->error, r->error_bytes, "%s: '%s' is not valid; allowed: %s", name, value, allowed);
	return -EINVAL;
}

/* "lines" alone is a flag as well as "lines=1". */
static int read_flag(const struct reading *r, const char *name, bool *flag)
{
	const char *value = r->get(r->context, name);

	if (!value)
		return 0;
	*flag = !*value || strcmp(value, "1") == 0 || strcmp(value, "true") == 0;
	if (!*flag && strcmp(value, "0") != 0 && strcmp(value, "false") != 0)
		return refuse(r, name, value, "1, 0, true, false");
	return 0;
}

static int read_flags(const struct reading *r)
{
	struct api_query *q = r->query;

	const struct {
		const char *name;
		bool *flag;
	} flags[] = {{"cum", &q->cum}, {"inverted", &q->inverted}, {"normalize", &q->normalize},
	    {"lines", &q->lines}, {"full-names", &q->full_names}, {"all-frames", &q->all_frames}};
	int err = 0;

	for (size_t i = 0; i < sizeof(flags) / sizeof(*flags) && !err; i++)
		err = read_flag(r, flags[i].name, flags[i].flag);
	return err;
}

static int read_kind(const struct reading *r)
{
	const char *value = value_of(r, "sort");
	char words[256] = "";

	if (!value)
		return 0;
	for (int kind = 0; kind < MEASURE_OTHER; kind++) {
		if (strcmp(value, traces_kind_word((enum measure_kind)kind)) != 0)
			continue;
		r->query->kind = (enum measure_kind)kind;
		r->query->sorted = true;
		return 0;
	}
	for (int kind = 0; kind < MEASURE_OTHER; kind++)
		text_append(words, sizeof(words), "%s%s", kind ? ", " : "",
		    traces_kind_word((enum measure_kind)kind));
	return refuse(r, "sort", value, words);
}

static int read_grouping(const struct reading *r)
{
	static const char *const names[] = {[GROUP_FUNCTION] = "function",
	    [GROUP_THREAD] = "thread",
	    [GROUP_PROCESS] = "process",
	    [GROUP_SIZE] = "size",
	    [GROUP_AGE] = "age",
	    [GROUP_LIFETIME] = "lifetime"};
	const char *value = value_of(r, "by");

	if (!value)
		return 0;
	for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++) {
		if (strcmp(value, names[i]) != 0)
			continue;
		r->query->by = (enum grouping)i;
		return 0;
	}
	return refuse(r, "by", value, "function, thread, process, size, age");
}

static int read_rows(const struct reading *r)
{
	const char *value = value_of(r, "rows"), *suffix;
	uint64_t rows;

	if (!value || strcmp(value, "all") == 0)
		return 0;
	if (quantity_number(value, &rows, &suffix) || *suffix || rows < 1 || rows > INT32_MAX)
		return refuse(r, "rows", value, "1 or more, or all");
	r->query->rows = (size_t)rows;
	return 0;
}

/* "2", "0.5", "0.5%" */
static int read_threshold(const struct reading *r)
{
	const char *value = value_of(r, "threshold"), *suffix;
	uint64_t whole, tenths = 0;

	if (!value)
		return 0;
	if (quantity_number(value, &whole, &suffix) || whole > 100)
		return refuse(r, "threshold", value, "0 to 100 percent, with one decimal if wanted");
	if (suffix[0] == '.' && suffix[1] >= '0' && suffix[1] <= '9') {
		tenths = (uint64_t)(suffix[1] - '0');
		suffix += 2;
	}
	if (*suffix && strcmp(suffix, "%") != 0)
		return refuse(r, "threshold", value, "0 to 100 percent, with one decimal if wanted");
	r->query->threshold_permille = (unsigned int)(whole * 10 + tenths);
	return 0;
}

static int read_layout(const struct reading *r)
{
	const char *value = value_of(r, "layout");

	r->query->columns = value && strcmp(value, "columns") == 0;
	return !value || r->query->columns || strcmp(value, "rows") == 0
	    ? 0
	    : refuse(r, "layout", value, "rows, columns");
}

static int read_ranges(const struct reading *r)
{
	struct filter *filter = &r->query->filter;
	const char *size = value_of(r, "size"), *age = value_of(r, "age");
	uint64_t least, most;

	if (size && quantity_bytes_range(size, &least, &most))
		return refuse(r, "size", size, "MIN:MAX in bytes, for example 64:4K, 1M: or :100");
	if (size) {
		filter->by_size = true;
		filter->size_min = (double)least;
		filter->size_max = (double)most;
	}
	if (age && quantity_time_range(age, &filter->age_min_ns, &filter->age_max_ns))
		return refuse(r, "age", age, "MIN:MAX with units, for example 1s:1m or 10s:");
	filter->by_age = age != NULL;
	return 0;
}

int api_query_parse(
    struct api_query *query, api_query_get *get, const void *context, char *error, size_t error_bytes)
{
	memset(query, 0, sizeof(*query));
	const struct reading r = {query, get, context, error, error_bytes};
	int (*const parts[])(const struct reading *r) = {
	    read_flags, read_kind, read_grouping, read_rows, read_threshold, read_layout, read_ranges};
	int err = 0;

	for (size_t i = 0; i < sizeof(parts) / sizeof(*parts) && !err; i++)
		err = parts[i](&r);
	if (err)
		return err;
	const struct filter_texts texts = {value_of(&r, "focus"), value_of(&r, "ignore"),
	    value_of(&r, "module"), value_of(&r, "thread"), value_of(&r, "hide")};

	return filter_open(&query->filter, &texts, "", error, error_bytes);
}

void api_query_fini(struct api_query *query)
{
	filter_close(&query->filter);
}

bool api_query_selects_all(const struct api_query *query)
{
	const struct filter *f = &query->filter;

	return !f->focus && !f->ignore && !f->module && !f->thread && !f->hide && !f->by_size && !f->by_age;
}

bool api_query_is_plain(const struct api_query *query)
{
	return api_query_selects_all(query) && !query->sorted;
}
