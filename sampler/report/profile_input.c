/* SPDX-License-Identifier: Apache-2.0 */
#include "sampler/report/profile_input.h"

#include "pprof/analysis/headings.h"
#include "pprof/codec/input.h"
#include "pprof/export/format.h"
#include "pprof/text/pattern.h"
#include "pprof/profile/profile.h"
#include "sampler/cli/status.h"
#include "sampler/terminal/amount.h"
#include "sampler/terminal/log_line.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

struct file {
	const char *path;
	struct profile *profile;
	struct origin origin;
	size_t column;
};

/* ---- filters */

static int pattern_open(const char *option, const char *regex, struct pattern **out)
{
	char error[256];
	int err;

	if (!regex)
		return 0;
	err = pattern_new(regex, 0, out, error, sizeof(error));
	if (err == -EINVAL)
		log_line("--%s: '%s' is %s", option, regex, error);
	else if (err)
		log_line("not enough memory");
	return err;
}

static int filter_open(struct filter *filter, const struct read_options *read)
{
	filter->by_size = read->size_bytes.given;
	filter->size_min = (double)read->size_bytes.min;
	filter->size_max = (double)read->size_bytes.max;
	filter->by_age = read->age_ns.given;
	filter->age_min_ns = read->age_ns.min;
	filter->age_max_ns = read->age_ns.max;
	return pattern_open("focus", read->focus, &filter->focus) ||
	    pattern_open("ignore", read->ignore, &filter->ignore) ||
	    pattern_open("module", read->module, &filter->module) ||
	    pattern_open("thread", read->thread, &filter->thread) ||
	    pattern_open("hide", read->hide, &filter->hide);
}

static int labels_check(const struct filter *filter, enum grouping by, const struct file *file)
{
	const char *missing = filter_missing_label(filter, file->profile);

	if (!missing)
		missing = grouping_missing_label(by, file->profile);
	if (!missing)
		return 0;
	log_line("%s: no sample has the label %s; record with --labels %s", file->path, missing, missing);
	return -ENODATA;
}

/* ---- files */

void profile_input_say_memory(const struct read_options *read, int err)
{
	char limit[AMOUNT_BYTES];

	if (err == -EFBIG)
		log_line("this takes more than %s of memory; allow more with --max-memory",
		    amount_bytes((double)read->memory_max_bytes, limit));
	else
		log_line("not enough memory");
}

int profile_input_read(
    const char *path, const struct read_options *read, size_t *held_bytes, struct profile **profile)
{
	char error[PROFILE_INPUT_ERROR_BYTES], limit[AMOUNT_BYTES];
	size_t left = *held_bytes < read->memory_max_bytes ? (size_t)read->memory_max_bytes - *held_bytes : 0;
	int err = input_read(path, left, profile, error, sizeof(error));

	if (err == -EFBIG)
		log_line("%s: more than %s; allow more with --max-memory", error,
		    amount_bytes((double)read->memory_max_bytes, limit));
	else if (err)
		log_line("%s", error);
	else
		*held_bytes += profile_bytes(*profile);
	return err;
}

/* Has the profile code of files, and not one function of it? */
static bool is_nameless(const struct profile *profile)
{
	bool found = false;

	for (uint32_t id = 1; id <= profile_location_count(profile); id++) {
		struct profile_location location = profile_location(profile, id);

		if (!location.mapping || *profile_mapping(profile, location.mapping).filename != '/')
			continue;
		if (location.line_count)
			return false;
		found = true;
	}
	return found;
}

static int file_open(struct file *file, const char *path, const struct read_options *read, size_t *held_bytes)
{
	int err = profile_input_read(path, read, held_bytes, &file->profile);

	file->path = path;
	if (!err)
		origin_read(&file->origin, file->profile);
	return err;
}

static int compare_times(const void *left, const void *right)
{
	const struct file *a = left, *b = right;

	if ((a->origin.kind == ORIGIN_PEAK) != (b->origin.kind == ORIGIN_PEAK))
		return a->origin.kind == ORIGIN_PEAK ? 1 : -1;
	return a->origin.time_ns < b->origin.time_ns ? -1 : a->origin.time_ns > b->origin.time_ns;
}

/* A column for each file of a series, one for all otherwise, one for the peak. Returns how many there are. */
static size_t columns_choose(struct profile_input *input, struct file *files, size_t count)
{
	bool series = count > 1;

	for (size_t i = 0; i < count; i++)
		series = series && origin_same_process(&files[0].origin, &files[i].origin) &&
		    files[i].origin.kind != ORIGIN_DELTA;
	if (!series) {
		input->series_count = 1;
		input->has_peak = count == 1 && files[0].origin.kind == ORIGIN_PEAK;
		return 1;
	}
	qsort(files, count, sizeof(*files), compare_times);
	while (count > 2 && files[count - 2].origin.kind == ORIGIN_PEAK)
		count--;
	for (size_t i = 0; i < count; i++)
		files[i].column = i;
	input->has_peak = files[count - 1].origin.kind == ORIGIN_PEAK;
	input->series_count = input->has_peak && count > 1 ? count - 1 : count;
	return count;
}

/* JSON and other tools' formats are for programs: they have what is in the profile. */
static bool is_for_people(const struct read_options *read)
{
	return !read->json && read->format < 0;
}

static enum frames_names names_choose(const struct read_options *read)
{
	if (read->full_names)
		return FRAMES_FULL;
	if (read->format >= 0)
		return export_formats[read->format].needs & EXPORT_LABELS ? FRAMES_LABELS : FRAMES_FULL;
	/* Suppressions match the whole names. */
	return !is_for_people(read) ? FRAMES_FULL : read->leaks ? FRAMES_LABELS : FRAMES_SHORT;
}

static int columns_fill(struct profile_input *input, const struct options *options, struct file *files,
    size_t count, size_t column_count)
{
	const struct traces_options choices = {
	    .lines = options->read.lines,
	    .anonymize = options->read.anonymize,
	    .names = names_choose(&options->read),
	    .by = options->read.by,
	    .fold = is_for_people(&options->read) && !options->read.leaks && !options->read.all_frames,
	    .filter = &input->filter,
	    .max_bytes = options->read.memory_max_bytes,
	};
	int err = 0;

	input->origins = calloc(column_count, sizeof(*input->origins));
	if (!input->origins)
		return -ENOMEM;
	if (traces_init(&input->traces, &choices, files[0].profile, column_count))
		err = -ENOMEM;
	for (size_t i = count; i-- > 0 && !err;)
		input->origins[files[i].column] = files[i].origin;
	for (size_t i = 0; i < count && !err; i++) {
		err = labels_check(&input->filter, options->read.by, &files[i]);
		if (err)
			return err;
		err = traces_add(&input->traces, files[i].profile, files[i].column);
		if (err == -ENODATA)
			log_line("%s and %s have no sample type in common: read heap profiles and event "
			         "profiles separately",
			    files[0].path, files[i].path);
		profile_free(files[i].profile);
		files[i].profile = NULL;
	}
	if (!err && choices.fold)
		err = headings_choose(&input->traces);
	if (err == -ENOMEM || err == -EOVERFLOW || err == -EFBIG)
		profile_input_say_memory(&options->read, err);
	return err;
}

static void extremes_find(struct profile_input *input)
{
	const struct traces *t = &input->traces;

	input->now = input->series_count - 1;
	if (input->has_peak) {
		input->peak = t->column_count - 1;
		return;
	}
	for (size_t i = 1; i < input->series_count; i++)
		if (traces_all(t, i, MEASURE_INUSE) > traces_all(t, input->peak, MEASURE_INUSE))
			input->peak = i;
}

static int open_all(struct profile_input *input, const struct options *options, bool columns)
{
	size_t count = (size_t)options->operand_count, column_count = count, i;
	struct file *files = calloc(count, sizeof(*files));
	size_t held_bytes = 0;
	int err = files ? 0 : -ENOMEM;

	memset(input, 0, sizeof(*input));
	input->series_count = 1;
	input->file_count = count;
	if (filter_open(&input->filter, &options->read)) {
		free(files);
		return STATUS_USAGE;
	}
	for (i = 0; i < count && !err; i++) {
		err = file_open(&files[i], options->operands[i], &options->read, &held_bytes);
		files[i].column = columns ? i : 0;
		if (!err && is_nameless(files[i].profile))
			input->nameless = options->operands[i];
	}
	if (!err && !columns)
		column_count = columns_choose(input, files, count);
	if (!err)
		err = columns_fill(input, options, files, count, column_count);
	if (!err)
		extremes_find(input);
	for (i = 0; files && i < count; i++)
		profile_free(files[i].profile);
	free(files);
	return err ? 1 : 0;
}

int profile_input_open(struct profile_input *input, const struct options *options)
{
	return open_all(input, options, false);
}

int profile_input_open_columns(struct profile_input *input, const struct options *options)
{
	return open_all(input, options, true);
}

void profile_input_close(struct profile_input *input)
{
	traces_fini(&input->traces);
	pattern_free(input->filter.focus);
	pattern_free(input->filter.ignore);
	pattern_free(input->filter.module);
	pattern_free(input->filter.thread);
	pattern_free(input->filter.hide);
	free(input->origins);
	memset(input, 0, sizeof(*input));
}

int profile_input_kind(
    const struct profile_input *input, enum sort_key key, enum measure_kind *kind, size_t *column)
{
	static const enum measure_kind kinds[] = {
	    [SORT_INUSE] = MEASURE_INUSE,
	    [SORT_INUSE_OBJECTS] = MEASURE_INUSE_OBJECTS,
	    [SORT_ALLOC] = MEASURE_ALLOC,
	    [SORT_OBJECTS] = MEASURE_OBJECTS,
	    [SORT_FREED] = MEASURE_FREED,
	    [SORT_TEMPORARY] = MEASURE_TEMPORARY,
	    [SORT_PEAK] = MEASURE_INUSE,
	};

	*column = key == SORT_PEAK ? input->peak : input->now;
	*kind = key == SORT_DEFAULT ? traces_default_kind(&input->traces) : kinds[key];
	if (traces_has(&input->traces, *kind))
		return 0;
	if (key == SORT_TEMPORARY && traces_has(&input->traces, MEASURE_FREED))
		log_line("--sort temporary: this profile does not say when blocks were freed; record with "
		         "--labels "
		         "lifetime, or use --sort freed");
	else
		log_line("--sort %s: this profile has no such values", sort_key_name(key));
	return 1;
}
