/* SPDX-License-Identifier: Apache-2.0 */
/* The option table's rows for the commands that read profiles. */
#include "sampler/cli/option.h"
#include "sampler/cli/option_values.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>

#define READING (COMMAND_REPORT | COMMAND_DIFF | COMMAND_EXPORT)

static const char *const sort_names[] = {
    "inuse", "inuse-objects", "alloc", "objects", "temporary", "peak", NULL};
static const char *const format_names[] = {
    "folded", "flamegraph", "speedscope", "json", "csv", "massif", "heaptrack", NULL};

void options_read_defaults(struct read_options *read)
{
	memset(read, 0, sizeof(*read));
	read->format = FORMAT_COUNT;
	read->threshold_permille = 10;
}

const char *export_format_name(enum export_format format)
{
	return format_names[format];
}

const char *sort_key_name(enum sort_key key)
{
	return key == SORT_DEFAULT ? "" : sort_names[key - SORT_INUSE];
}

static int set_sort(struct options *options, const char *value)
{
	int choice = option_value_choice(sort_names, value);

	if (choice < 0)
		return -EINVAL;
	options->read.sort = (enum sort_key)(SORT_INUSE + choice);
	return 0;
}

static int set_format(struct options *options, const char *value)
{
	int choice = option_value_choice(format_names, value);

	if (choice < 0)
		return -EINVAL;
	options->read.format = (enum export_format)choice;
	return 0;
}

static int set_rows(struct options *options, const char *value)
{
	const char *suffix;
	uint64_t rows;

	if (strcmp(value, "all") == 0) {
		options->read.rows = ROWS_ALL;
		return 0;
	}
	if (option_value_number(value, &rows, &suffix) || *suffix || rows < 1 || rows >= ROWS_ALL)
		return -EINVAL;
	options->read.rows = (int32_t)rows;
	return 0;
}

/* "2", "0.5", "0.5%": tenths at most. */
static int set_threshold(struct options *options, const char *value)
{
	uint64_t whole, tenths = 0;
	const char *suffix;

	if (option_value_number(value, &whole, &suffix) || whole > 100)
		return -EINVAL;
	if (suffix[0] == '.' && suffix[1] >= '0' && suffix[1] <= '9') {
		tenths = (uint64_t)(suffix[1] - '0');
		suffix += 2;
	}
	if (*suffix && strcmp(suffix, "%") != 0)
		return -EINVAL;
	options->read.threshold_permille = (uint32_t)(whole * 10 + tenths);
	return 0;
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

static int set_size(struct options *options, const char *value)
{
	struct read_options *read = &options->read;
	char least[32], most[32];

	read->by_size = true;
	read->size_min_bytes = 0;
	read->size_max_bytes = UINT64_MAX;
	if (range_split(value, least, most, sizeof(least)) ||
	    (*least && option_value_bytes(least, 0, INT64_MAX, &read->size_min_bytes)) ||
	    (*most && option_value_bytes(most, 0, INT64_MAX, &read->size_max_bytes)))
		return -EINVAL;
	return read->size_min_bytes <= read->size_max_bytes ? 0 : -EINVAL;
}

static int set_age(struct options *options, const char *value)
{
	struct read_options *read = &options->read;
	char least[32], most[32];

	read->by_age = true;
	read->age_min_ns = 0;
	read->age_max_ns = UINT64_MAX;
	if (range_split(value, least, most, sizeof(least)) ||
	    (*least && option_value_time(least, 0, INT64_MAX, &read->age_min_ns)) ||
	    (*most && option_value_time(most, 0, INT64_MAX, &read->age_max_ns)))
		return -EINVAL;
	return read->age_min_ns <= read->age_max_ns ? 0 : -EINVAL;
}

static int set_fail_over(struct options *options, const char *value)
{
	options->read.fails_over = true;
	return option_value_bytes(value, 0, INT64_MAX, &options->read.fail_over_bytes);
}

static int set_output(struct options *options, const char *value)
{
	options->output = value;
	return *value ? 0 : -EINVAL;
}

/* A row for each plain string and flag would be the same function again and again. */
#define SET_TEXT(field)                                                    \
	static int set_##field(struct options *options, const char *value) \
	{                                                                  \
		options->read.field = value;                               \
		return *value ? 0 : -EINVAL;                               \
	}
#define SET_FLAG(name, field, state)                                      \
	static int set_##name(struct options *options, const char *value) \
	{                                                                 \
		options->read.field = state;                              \
		return 0;                                                 \
	}

SET_TEXT(focus)
SET_TEXT(ignore)
SET_TEXT(module)
SET_TEXT(thread)
SET_TEXT(suppressions)
SET_FLAG(tree, tree, true)
SET_FLAG(inverted, inverted, true)
SET_FLAG(cum, cum, true)
SET_FLAG(lines, lines, true)
SET_FLAG(functions, lines, false)
SET_FLAG(leaks, leaks, true)
SET_FLAG(json, json, true)
SET_FLAG(normalize, normalize, true)
SET_FLAG(anonymize, anonymize, true)
SET_FLAG(no_pager, no_pager, true)

#define REGEX "a regular expression, not empty"

const struct option options_read_table[] = {
    {READING, '\0', "sort", NULL, sort_names, NULL, set_sort,
        "what is counted: bytes or objects in use, bytes or\nobjects ever allocated, objects freed again, or "
        "the\n"
        "bytes in use in the largest snapshot"},
    {COMMAND_REPORT | COMMAND_DIFF, '\0', "cum", NULL, NULL, NULL, set_cum,
        "order by what a function and its callees hold"},
    {COMMAND_REPORT | COMMAND_DIFF, 'n', "rows", "N", NULL, "1 or more, or all", set_rows,
        "rows per table, or all"},
    {COMMAND_REPORT, 't', "tree", NULL, NULL, NULL, set_tree, "call tree, from main inwards"},
    {COMMAND_REPORT, '\0', "inverted", NULL, NULL, NULL, set_inverted,
        "call tree, from the allocating function outwards"},
    {COMMAND_REPORT | COMMAND_EXPORT, '\0', "threshold", "PERCENT", NULL,
        "0 to 100, with one decimal if wanted", set_threshold, "fold what is smaller in a tree, default 1"},
    {COMMAND_REPORT, 'l', "leaks", NULL, NULL, NULL, set_leaks,
        "stacks of what is still in use, for exit profiles"},
    {COMMAND_REPORT, '\0', "suppressions", "FILE", NULL, "the name of a file", set_suppressions,
        "leave out leaks that FILE names, in the form of\nLeakSanitizer: lines 'leak:PATTERN'"},
    {COMMAND_REPORT | COMMAND_DIFF, '\0', "fail-over", "BYTES", NULL, "0 or more, with K, M or G if wanted",
        set_fail_over, "exit status 3 if more is in use (diff: if use grew\nby more)"},
    {COMMAND_DIFF, '\0', "normalize", NULL, NULL, NULL, set_normalize,
        "scale NEW to the total of BASE first"},
    {READING, '\0', "focus", "RE", NULL, REGEX, set_focus,
        "only stacks with a function or source file like RE"},
    {READING, '\0', "ignore", "RE", NULL, REGEX, set_ignore,
        "no stacks with a function or source file like RE"},
    {READING, '\0', "module", "RE", NULL, REGEX, set_module,
        "only stacks through a program or library like RE"},
    {READING, '\0', "thread", "RE", NULL, REGEX, set_thread, "only threads whose name or id is like RE"},
    {READING, '\0', "size", "MIN:MAX", NULL, "MIN:MAX in bytes, such as 64:4K, 1M: or :100", set_size,
        "only blocks of this size, mean per stack"},
    {READING, '\0', "age", "MIN:MAX", NULL, "MIN:MAX with units, such as 1s:1m or 10s:", set_age,
        "only blocks of this age"},
    {READING, '\0', "lines", NULL, NULL, NULL, set_lines, "tell source lines apart"},
    {READING, '\0', "functions", NULL, NULL, NULL, set_functions, "do not (the default)"},
    {COMMAND_REPORT | COMMAND_DIFF, '\0', "json", NULL, NULL, NULL, set_json, "everything, for programs"},
    {COMMAND_EXPORT, 'f', "format", NULL, format_names, NULL, set_format, "what to write; must be given"},
    {COMMAND_EXPORT | COMMAND_MERGE, '\0', "anonymize", NULL, NULL, NULL, set_anonymize,
        "write hashes instead of names"},
    {READING | COMMAND_MERGE, 'o', "output", "FILE", NULL, "the name of a file", set_output,
        "write to FILE instead of standard output"},
    {COMMAND_REPORT | COMMAND_DIFF, '\0', "no-pager", NULL, NULL, NULL, set_no_pager,
        "straight to the terminal, however long"},
};

const size_t options_read_count = sizeof(options_read_table) / sizeof(options_read_table[0]);
