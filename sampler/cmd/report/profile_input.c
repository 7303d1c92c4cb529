/* SPDX-License-Identifier: Apache-2.0 */
#include "sampler/cmd/report/profile_input.h"

#include "pprof/analysis/row_label.h"
#include "pprof/export/format.h"
#include "pprof/model/profile.h"
#include "pprof/store/exit_code.h"
#include "pprof/text/amount.h"
#include "pprof/text/log_line.h"
#include "sampler/cmd/report/profile_files.h"
#include "sampler/cmd/report/selection.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum { COMPARED = 2 };

/* ---- filters */

static int filter_read(struct filter *filter, const struct read_options *read)
{
	const struct filter_texts texts = {read->focus, read->ignore, read->module, read->thread, read->hide};
	char error[512];
	int err;

	filter->by_size = read->size_bytes.given;
	filter->size_min = (double)read->size_bytes.min;
	filter->size_max = (double)read->size_bytes.max;
	filter->by_age = read->age_ns.given;
	filter->age_min_ns = read->age_ns.min;
	filter->age_max_ns = read->age_ns.max;
	err = filter_open(filter, &texts, "--", error, sizeof(error));
	if (err)
		log_line("%s", error);
	return err;
}

/* One profile with the label is enough: a process that has freed everything has no ages. */
static int labels_check(const struct filter *filter, enum grouping by, const struct profile_files *files,
    const struct selection *s)
{
	const char *missing = NULL;
	size_t at = s->count;

	while (at-- > 0) {
		const struct profile *profile = files->files[s->pairs[at].file].profile;

		missing = filter_missing_label(filter, profile);
		if (!missing)
			missing = grouping_missing_label(by, profile);
		if (!missing)
			return 0;
	}
	log_line("%s: no sample has the label %s; record with --labels %s",
	    files->files[s->pairs[0].file].path, missing, missing);
	return -ENODATA;
}

void profile_input_say_memory(const struct read_options *read, int err)
{
	char limit[AMOUNT_BYTES];

	if (err == -EFBIG)
		log_line("this takes more than %s of memory; allow more with --max-memory",
		    amount_bytes((double)read->memory_max_bytes, limit));
	else
		log_line("not enough memory");
}

/* ---- columns */

/* Of several processes the comment is shown of the one with the most memory that is not seen. */
static void choose_unseen(struct origin *shown, const struct origin *const *origins, size_t count)
{
	const struct origin *most = NULL;

	for (size_t i = 0; i < count; i++)
		if (*origins[i]->unseen && (!most || origins[i]->anonymous_bytes > most->anonymous_bytes))
			most = origins[i];
	if (most && (!*shown->unseen || most->anonymous_bytes > shown->anonymous_bytes))
		strcpy(shown->unseen, most->unseen);
}

/* Describes a column by its files; the newest file's origin stands for all. */
static int column_describe(
    struct profile_input *input, const struct profile_files *files, const struct selection *s, size_t column)
{
	const struct origin **origins = calloc(s->count + 1, sizeof(*origins)), *newest = NULL;
	size_t count = 0, process_count = 0, last = 0;
	int64_t inherited_bytes = 0;
	int err = -ENOMEM;

	for (size_t i = 0; origins && i < s->count; i++) {
		const struct origin *origin = files->origins[s->pairs[i].file];

		if (s->pairs[i].column != column)
			continue;
		process_count += !count || s->pairs[i].process != last;
		traces_sum(&inherited_bytes, files->files[s->pairs[i].file].inherited_bytes);
		last = s->pairs[i].process;
		origins[count++] = origin;
		if (!newest || origin->time_ns > newest->time_ns)
			newest = origin;
	}
	if (newest)
		input->origins[column] = *newest;
	choose_unseen(&input->origins[column], origins, count);
	if (origins)
		err = process_set_make(&input->sets[column], origins, count, process_count);
	input->sets[column].inherited_bytes = inherited_bytes;
	free(origins);
	return err;
}

/* Has the profile addresses in files, and not one function? */
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

/* JSON and other tools' formats are for programs: they get the profile's own names. */
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

static bool has_answer(const struct read_options *read)
{
	return read->format < 0 || (export_formats[read->format].needs & EXPORT_ANSWER) != 0;
}

static bool is_split(const struct read_options *read)
{
	return read->format >= 0 && (export_formats[read->format].needs & EXPORT_SPLIT) != 0;
}

static int pair_add(struct profile_input *input, struct traces *traces, const struct profile_files *files,
    const struct selection_pair *pair, const struct selection_pair *first)
{
	struct profile_file *file = &files->files[pair->file];
	int err;

	if (is_nameless(file->profile) && !input->nameless)
		input->nameless = strdup(file->path);
	err = pair->ended ? traces_add_ended(traces, file->profile, pair->column)
	                  : traces_add(traces, file->profile, pair->column);
	if (err == -ENODATA)
		log_line("%s and %s have no sample type in common: read heap profiles and event profiles "
		         "separately",
		    files->files[first->file].path, file->path);
	return err;
}

/* 0 or a negative errno. */
static int rows_fill(struct traces *traces, struct profile_input *input, const struct traces_options *choices,
    const struct profile_files *files, const struct selection *s)
{
	int err = traces_init(traces, choices, files->files[s->pairs[0].file].profile, s->column_count);

	for (size_t i = 0; i < s->count && !err; i++)
		err = traces_expect(traces, files->files[s->pairs[i].file].profile, s->pairs[i].column);
	for (size_t i = 0; i < s->count && !err; i++)
		err = pair_add(input, traces, files, &s->pairs[i], &s->pairs[0]);
	if (!err)
		err = traces_finish(traces);
	if (!err && (choices->fold || choices->split))
		err = row_label_choose(traces);
	return err;
}

static int columns_fill(struct profile_input *input, const struct options *options,
    const struct profile_files *files, const struct selection *s)
{
	struct traces_options choices = {
	    .lines = options->read.lines,
	    .anonymize = options->read.anonymize,
	    .names = names_choose(&options->read),
	    .by = options->read.by,
	    .fold = is_for_people(&options->read) && !options->read.leaks && !options->read.all_frames,
	    .split = is_split(&options->read),
	    .filter = &input->filter,
	    .max_bytes = options->read.memory_max_bytes,
	};
	int err = 0;

	input->origins = calloc(s->column_count, sizeof(*input->origins));
	input->sets = calloc(s->column_count, sizeof(*input->sets));
	if (!input->origins || !input->sets)
		err = -ENOMEM;
	if (!err)
		err = labels_check(&input->filter, options->read.by, files, s);
	for (size_t i = 0; i < s->column_count && !err; i++)
		err = column_describe(input, files, s, i);
	if (!err)
		err = rows_fill(&input->traces, input, &choices, files, s);
	if (!err &&
	    (options->read.json || options->read.leaks ||
	        (options->read.format >= 0 && has_answer(&options->read)))) {
		choices.names = options->read.full_names ? FRAMES_FULL : FRAMES_SHORT;
		choices.fold = !options->read.all_frames;
		choices.split = false;
		input->has_tables = true;
		err = rows_fill(&input->tables, input, &choices, files, s);
	}
	if (err == -ENOMEM || err == -EOVERFLOW || err == -EFBIG)
		profile_input_say_memory(&options->read, err);
	return err ? 1 : 0;
}

static void extremes_find(struct profile_input *input)
{
	const struct traces *t = &input->traces;

	if (input->has_peak) {
		/* The last column, except for the series of several processes. */
		input->peak = (input->growth_first ? input->growth_first : t->column_count) - 1;
		return;
	}
	for (size_t i = 1; i < input->series_count; i++)
		if (traces_all(t, i, MEASURE_INUSE) > traces_all(t, input->peak, MEASURE_INUSE))
			input->peak = i;
}

/* Frees the profiles that do not count. */
static void free_others(struct profile_files *files, const struct selection *s)
{
	for (size_t i = 0; i < s->count; i++)
		files->files[s->pairs[i].file].chosen = true;
	for (size_t i = 0; i < files->count; i++) {
		if (files->files[i].chosen)
			continue;
		profile_free(files->files[i].profile);
		files->files[i].profile = NULL;
	}
}

/* The sum of the processes that run at that moment; -1: not known. */
static int64_t rss_at(const struct profile_files *files, const struct selection *s, size_t column)
{
	int64_t sum = 0;

	for (size_t i = 0; i < s->count; i++) {
		const struct origin *origin = files->origins[s->pairs[i].file];

		if (s->pairs[i].column != column || s->pairs[i].ended)
			continue;
		if (origin->rss_bytes < 0)
			return -1;
		traces_sum(&sum, origin->rss_bytes);
	}
	return sum;
}

/* 0, or 1 after a line. */
static int growth_points(
    struct profile_input *input, const struct profile_files *files, const struct selection *s)
{
	input->growth_times_ns = calloc(s->growth_count + 1, sizeof(*input->growth_times_ns));
	input->growth_rss_bytes = calloc(s->growth_count + 1, sizeof(*input->growth_rss_bytes));
	if (!input->growth_times_ns || !input->growth_rss_bytes) {
		log_line("not enough memory");
		return 1;
	}
	for (size_t i = 0; i < s->growth_count; i++) {
		input->growth_times_ns[i] =
		    s->growth_first ? s->growth_times_ns[i] : input->origins[i].time_ns;
		input->growth_rss_bytes[i] = rss_at(files, s, s->growth_first + i);
	}
	return 0;
}

static int input_fill(struct profile_input *input, const struct options *options, struct profile_files *files,
    const struct selection *s)
{
	int status;

	free_others(files, s);
	status = columns_fill(input, options, files, s);
	if (status)
		return status;
	for (size_t i = 0; i < s->count; i++)
		input->file_count += !s->pairs[i].is_added_up;
	input->series_count = s->series_count;
	input->growth_first = s->growth_first;
	input->growth_count = s->growth_count;
	input->now = s->now;
	input->has_peak = s->has_peak;
	input->state = s->state;
	input->session = s->session;
	input->session_count = s->session_count;
	if (growth_points(input, files, s))
		return 1;
	extremes_find(input);
	if (s->state == READ_PEAK)
		input->now = input->peak;
	return 0;
}

static int input_begin(struct profile_input *input, const struct options *options,
    const struct profile_files_choice *choice, struct profile_files *files)
{
	memset(input, 0, sizeof(*input));
	memset(files, 0, sizeof(*files));
	input->series_count = 1;
	if (filter_read(&input->filter, &options->read))
		return STATUS_USAGE;
	return profile_files_read(files, options, choice);
}

int profile_input_open(struct profile_input *input, const struct options *options, bool pass_unread)
{
	const struct profile_files_choice whole = {.pass_unread = pass_unread,
	    .services = options->read.timeline ? STORE_MOMENT_ALL : STORE_MOMENT_SERIES};
	const struct selection_choice choice = {.state = options->read.state,
	    .session = options->read.session,
	    .no_growth = !has_answer(&options->read)};
	struct selection selection = {0};
	struct profile_files files;
	int status = input_begin(input, options, &whole, &files);

	if (!status)
		status = profile_files_select(&files, 0, files.count, &choice, &selection);
	if (status == -ERANGE)
		status = profile_files_say_no_session(choice.session, selection.session_count);
	if (!status)
		status = input_fill(input, options, &files, &selection);
	input->unread_count = files.unread_count;
	selection_fini(&selection);
	profile_files_fini(&files);
	return status;
}

/* ---- comparing */

/* Appends one side's choice, which has one column, as a column of both. */
static int side_append(struct selection *both, const struct selection *side)
{
	struct selection_pair *pairs =
	    reallocarray(both->pairs, both->count + side->count + 1, sizeof(*both->pairs));

	if (!pairs) {
		log_line("not enough memory");
		return 1;
	}
	both->pairs = pairs;
	for (size_t i = 0; i < side->count; i++)
		both->pairs[both->count++] = (struct selection_pair){.file = side->pairs[i].file,
		    .column = both->column_count,
		    .process = side->pairs[i].process};
	both->column_count++;
	return 0;
}

struct side {
	size_t first, count; /* files */
	struct selection_choice choice;
};

/* Of two operands the files of each; of one operand its last two sessions. */
static int sides_find(
    const struct profile_files *files, const struct options *options, struct side sides[COMPARED])
{
	const struct selection_choice choice = {
	    .state = options->read.state, .session = options->read.session, .one_column = true};
	size_t base = 0;

	sides[0] = sides[1] = (struct side){0, files->count, choice};
	if (options->operand_count < COMPARED && !files->operands.has_folder) {
		log_line("diff needs BASE and NEW, or a folder with two sessions");
		return STATUS_USAGE;
	}
	if (options->operand_count < COMPARED) {
		sides[0].choice.session = SESSION_NEWEST + 1;
		sides[1].choice.session = SESSION_NEWEST;
		return 0;
	}
	while (base < files->count && files->files[base].operand == 0)
		base++;
	sides[0].count = sides[1].first = base;
	sides[1].count = files->count - base;
	for (size_t i = 0; i < COMPARED; i++) {
		if (sides[i].count)
			continue;
		log_line("cannot read %s: not a profile, or a folder without any", options->operands[i]);
		return 1;
	}
	return 0;
}

int profile_input_open_columns(struct profile_input *input, const struct options *options)
{
	const struct profile_files_choice whole = {.each_counts = true};
	struct selection both = {.series_count = 1, .state = options->read.state};
	struct profile_files files;
	struct side sides[COMPARED];
	int status = input_begin(input, options, &whole, &files);

	if (!status)
		status = sides_find(&files, options, sides);
	for (size_t i = 0; i < COMPARED && !status; i++) {
		struct selection side;

		status =
		    profile_files_select(&files, sides[i].first, sides[i].count, &sides[i].choice, &side);
		if (!status)
			status = side_append(&both, &side);
		if (status == -ERANGE) {
			log_line("diff needs BASE and NEW, or a folder with two sessions: here is one");
			status = 1;
		}
		selection_fini(&side);
	}
	both.state = READ_NEWEST; /* columns are what was asked for */
	if (!status)
		status = input_fill(input, options, &files, &both);
	selection_fini(&both);
	profile_files_fini(&files);
	return status;
}

void profile_input_close(struct profile_input *input)
{
	traces_fini(&input->traces);
	if (input->has_tables)
		traces_fini(&input->tables);
	filter_close(&input->filter);
	free(input->origins);
	free(input->sets);
	free(input->growth_times_ns);
	free(input->growth_rss_bytes);
	free(input->nameless);
	memset(input, 0, sizeof(*input));
}

const struct traces *profile_input_tables(const struct profile_input *input)
{
	return input->has_tables ? &input->tables : &input->traces;
}

int profile_input_kind(
    const struct profile_input *input, enum sort_key key, enum measure_kind *kind, size_t *column)
{
	static const enum measure_kind kinds[] = {
#define KIND(constant, word, type) [SORT_##constant] = MEASURE_##constant,
	    MEASURES(KIND)
#undef KIND
	        [SORT_PEAK] = MEASURE_INUSE,
	};

	*column = key == SORT_PEAK ? input->peak : input->now;
	*kind = key == SORT_DEFAULT ? traces_default_kind(&input->traces) : kinds[key];
	if (traces_has(&input->traces, *kind))
		return 0;
	if (key == SORT_TEMPORARY && traces_has(&input->traces, MEASURE_FREED))
		log_line("--sort temporary: this profile does not say when blocks were freed; record with "
		         "--labels lifetime, or use --sort freed");
	else
		log_line("--sort %s: this profile has no such values", sort_key_name(key));
	return 1;
}
