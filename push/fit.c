/* SPDX-License-Identifier: Apache-2.0 */
#include "push/fit.h"
#include "pprof/analysis/stack_key.h"

#include "pprof/codec/encode.h"
#include "pprof/model/labels.h"
#include "pprof/model/profile.h"
#include "pprof/table/array.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ---- which samples matter: groups of samples that the server will see as one, the largest first */

struct fit_group {
	double share;          /* the largest of any sample type's total */
	uint32_t first, count; /* of order[] */
};

struct fit_rank {
	struct fit_entry {
		uint64_t key;
		uint32_t sample;
	} * order;
	struct fit_group *groups; /* by share, largest first; samples without any value are in none */
	size_t count;
};

static void fit_rank_fini(struct fit_rank *rank)
{
	free(rank->order);
	free(rank->groups);
	*rank = (struct fit_rank){0};
}

static int compare_entries(const void *a, const void *b)
{
	const struct fit_entry *x = a, *y = b;

	if (x->key != y->key)
		return x->key < y->key ? -1 : 1;
	return x->sample < y->sample ? -1 : x->sample > y->sample;
}

/* Equal shares stay in the order of their keys, so that equal profiles are fitted alike. */
static int compare_groups(const void *a, const void *b)
{
	const struct fit_group *x = a, *y = b;

	if (x->share != y->share)
		return x->share > y->share ? -1 : 1;
	return x->first < y->first ? -1 : x->first > y->first;
}

static bool any_value(const struct fit_input *input, size_t types, size_t sample)
{
	for (size_t t = 0; t < types; t++)
		if (input->types[t] && input->values[sample * types + t])
			return true;
	return false;
}

static int make_order(struct fit_rank *rank, const struct fit_input *input, size_t types, size_t *count)
{
	size_t samples = profile_sample_count(input->profile);
	struct stack_keys keys;

	if (samples >= UINT32_MAX)
		return -EOVERFLOW;
	rank->order = malloc((samples + 1) * sizeof(*rank->order));
	if (!rank->order || stack_keys_init(&keys, input->profile))
		return -ENOMEM;
	*count = 0;
	for (size_t i = 0; i < samples; i++) {
		if (!any_value(input, types, i))
			continue;
		/* Where numbers are kept each sample is a group: its key is its place. */
		rank->order[(*count)++] = (struct fit_entry){
		    input->limits->drop_numbers ? stack_key_without_numbers(&keys, i) : i, (uint32_t)i};
	}
	stack_keys_fini(&keys);
	qsort(rank->order, *count, sizeof(*rank->order), compare_entries);
	return 0;
}

static void add_totals(const struct fit_input *input, size_t types, size_t samples, double *totals)
{
	for (size_t i = 0; i < samples; i++)
		for (size_t t = 0; t < types; t++)
			totals[t] += input->types[t] ? fabs((double)input->values[i * types + t]) : 0;
}

static double group_share(const struct fit_rank *rank, const struct fit_input *input,
    const struct fit_group *group, const double *totals, size_t types)
{
	double largest = 0;

	for (size_t t = 0; t < types; t++) {
		double sum = 0;

		for (uint32_t i = 0; input->types[t] && totals[t] > 0 && i < group->count; i++)
			sum += (double)input->values[rank->order[group->first + i].sample * types + t];
		if (totals[t] > 0 && fabs(sum) / totals[t] > largest)
			largest = fabs(sum) / totals[t];
	}
	return largest;
}

static int fit_rank_make(struct fit_rank *rank, const struct fit_input *input)
{
	size_t types = profile_sample_type_count(input->profile), count;
	double *totals = calloc(types + 1, sizeof(*totals));
	int err;

	*rank = (struct fit_rank){0};
	err = totals ? make_order(rank, input, types, &count) : -ENOMEM;
	if (!err) {
		rank->groups = malloc((count + 1) * sizeof(*rank->groups));
		err = rank->groups ? 0 : -ENOMEM;
	}
	if (err) {
		free(totals);
		fit_rank_fini(rank);
		return err;
	}
	add_totals(input, types, profile_sample_count(input->profile), totals);
	for (uint32_t i = 0; i < count; i++) {
		if (i && rank->order[i].key == rank->order[i - 1].key)
			rank->groups[rank->count - 1].count++;
		else
			rank->groups[rank->count++] = (struct fit_group){.first = i, .count = 1};
	}
	for (size_t i = 0; i < rank->count; i++)
		rank->groups[i].share = group_share(rank, input, &rank->groups[i], totals, types);
	if (rank->count)
		qsort(rank->groups, rank->count, sizeof(*rank->groups), compare_groups);
	free(totals);
	return 0;
}

/* ---- the profile */

/* Markers of profiles of ours are in this mapping, from its start on (sampler/write/symbolizer.c). */
enum {
	MARKERS_START = 0x1000,
	MARKERS_END = 0x2000,
	OTHER_ADDRESS = 0x1f00,
	CUT_ADDRESS = 0x1f01,
	COMMENT_BYTES = 64 << 10, /* of all comments together */
	SAMPLE_LABELS_MAX = 12,   /* with those of the series, within the 30 that Pyroscope allows */
};

struct fitting {
	const struct fit_input *input;
	struct profile *out;
	size_t types, out_types;
	uint32_t *mappings, *functions, *locations; /* ids in out by id; 0: not there yet */
	uint32_t cut;                               /* location of "[frames cut]" */
	uint32_t *stack;
	size_t stack_room;
	struct profile_label *labels;
	char (*names)[LABELS_NAME_BYTES + 2]; /* of the labels */
	size_t label_room, name_room;
	int64_t *values, *other;
	size_t stacks_cut, strings_cut;
};

void fitted_fini(struct fitted *fitted)
{
	free(fitted->bytes);
	fitted->bytes = NULL;
}

/* The end of a string, from the start of a character. */
static const char *tail_of(struct fitting *f, const char *text, size_t most)
{
	size_t length = strlen(text);

	if (length <= most)
		return text;
	f->strings_cut++;
	text += length - most;
	while ((*text & 0xc0) == 0x80)
		text++;
	return text;
}

static const char *tail(struct fitting *f, const char *text)
{
	return tail_of(f, text, f->input->limits->string_bytes);
}

/* ---- tables: what is used is copied when it is first met */

static uint32_t mapping_of(struct fitting *f, uint32_t id)
{
	if (id && !f->mappings[id]) {
		struct profile_mapping mapping = profile_mapping(f->input->profile, id);

		mapping.filename = tail(f, mapping.filename);
		mapping.build_id = tail(f, mapping.build_id);
		f->mappings[id] = profile_add_mapping(f->out, &mapping);
	}
	return id ? f->mappings[id] : 0;
}

static uint32_t function_of(struct fitting *f, uint32_t id)
{
	if (!f->functions[id]) {
		struct profile_function function = profile_function(f->input->profile, id);

		function.name = tail(f, function.name);
		function.system_name = tail(f, function.system_name);
		function.filename = tail(f, function.filename);
		f->functions[id] = profile_add_function(f->out, &function);
	}
	return f->functions[id];
}

static uint32_t location_of(struct fitting *f, uint32_t id)
{
	struct profile_location location;
	struct profile_line *lines;

	if (f->locations[id])
		return f->locations[id];
	location = profile_location(f->input->profile, id);
	lines = malloc((location.line_count + 1) * sizeof(*lines));
	if (!lines)
		return 0;
	for (size_t i = 0; i < location.line_count; i++) {
		lines[i] = location.lines[i];
		lines[i].function = function_of(f, lines[i].function);
	}
	location.lines = lines;
	location.mapping = mapping_of(f, location.mapping);
	f->locations[id] = profile_add_location(f->out, &location);
	free(lines);
	return f->locations[id];
}

static uint32_t marker(struct fitting *f, const char *name, uint64_t address)
{
	const struct profile_mapping mapping = {
	    .start = MARKERS_START, .limit = MARKERS_END, .filename = "[heaptap]", .build_id = ""};
	const struct profile_function function = {.name = name, .system_name = name, .filename = ""};
	const struct profile_line line = {.function = profile_add_function(f->out, &function)};
	const struct profile_location location = {.mapping = profile_add_mapping(f->out, &mapping),
	    .address = address,
	    .lines = &line,
	    .line_count = 1};

	return profile_add_location(f->out, &location);
}

/* ---- samples */

static int make_stack(struct fitting *f, const struct profile_sample *sample, size_t *depth)
{
	size_t most = f->input->limits->depth, leaf = most / 2, root = most - most / 2 - 1;

	*depth = sample->depth <= most ? sample->depth : most;
	if (array_reserve(&f->stack, &f->stack_room, *depth + 1, sizeof(*f->stack)))
		return -ENOMEM;
	for (size_t i = 0; i < *depth; i++) {
		size_t from = sample->depth <= most || i < leaf ? i : sample->depth - root + (i - leaf - 1);

		if (sample->depth > most && i == leaf) {
			if (!f->cut)
				f->cut = marker(f, "[frames cut]", CUT_ADDRESS);
			f->stack[i] = f->cut;
		} else {
			f->stack[i] = location_of(f, sample->locations[from]);
		}
		if (!f->stack[i])
			return -ENOMEM;
	}
	f->stacks_cut += sample->depth > most;
	return 0;
}

/* Text labels become labels of the series at some servers: their names must be legal there. */
static int make_labels(struct fitting *f, size_t index, size_t count, size_t *made)
{
	*made = 0;
	if (array_reserve(&f->labels, &f->label_room, count + 1, sizeof(*f->labels)) ||
	    array_reserve(&f->names, &f->name_room, count + 1, sizeof(*f->names)))
		return -ENOMEM;
	for (size_t i = 0; i < count && *made < SAMPLE_LABELS_MAX; i++) {
		struct profile_label label = profile_sample_label(f->input->profile, index, i);
		size_t old = 0;

		if (!label.str && f->input->limits->drop_numbers)
			continue;
		labels_name_clean(label.key, strlen(label.key), f->names[i]);
		label.key = f->names[i];
		while (old < *made && strcmp(f->labels[old].key, label.key) != 0)
			old++;
		if (old < *made)
			continue;
		if (label.str)
			label.str = tail_of(f, label.str, LABELS_VALUE_BYTES);
		f->labels[(*made)++] = label;
	}
	return 0;
}

static int add_sample(struct fitting *f, size_t index)
{
	struct profile_sample sample = profile_sample(f->input->profile, index);
	size_t depth, labels, to = 0;
	int err = make_stack(f, &sample, &depth);

	if (!err)
		err = make_labels(f, index, sample.label_count, &labels);
	for (size_t t = 0; t < f->types; t++)
		if (f->input->types[t])
			f->values[to++] = f->input->values[index * f->types + t];
	return err ? err : profile_add_sample(f->out, f->stack, depth, f->values, f->labels, labels);
}

static void add_other(struct fitting *f, size_t index)
{
	size_t to = 0;

	for (size_t t = 0; t < f->types; t++, to += f->input->types[t - 1])
		if (f->input->types[t] &&
		    __builtin_add_overflow(
		        f->other[to], f->input->values[index * f->types + t], &f->other[to]))
			f->other[to] = INT64_MAX;
}

/* ---- the whole */

static void add_header(struct fitting *f)
{
	const struct profile *in = f->input->profile;
	struct profile_value_type period = profile_period_type(in);
	size_t room = COMMENT_BYTES;

	for (size_t t = 0; t < f->types; t++) {
		struct profile_value_type type = profile_sample_type(in, t);

		if (f->input->types[t])
			profile_add_sample_type(f->out, type.type, type.unit);
		if (f->input->types[t] && strcmp(type.type, profile_default_sample_type(in)) == 0)
			profile_set_default_sample_type(f->out, type.type);
	}
	profile_set_period(f->out, period.type, period.unit, profile_period(in));
	profile_set_time(f->out, f->input->time_ns, f->input->duration_ns);
	profile_set_drop_frames(f->out, tail(f, profile_drop_frames(in)));
	profile_set_keep_frames(f->out, tail(f, profile_keep_frames(in)));
	for (size_t i = 0; i < profile_comment_count(in); i++) {
		const char *comment = tail(f, profile_comment(in, i));

		if (f->input->snapshot && strncmp(comment, "snapshot: ", 10) == 0)
			comment = f->input->snapshot;
		if (strlen(comment) >= room)
			break;
		room -= strlen(comment);
		profile_add_comment(f->out, comment);
	}
	if (f->input->comment)
		profile_add_comment(f->out, f->input->comment);
	/* Readers take the program's name from the first mapping. */
	if (profile_mapping_count(in))
		mapping_of(f, 1);
}

static int add_samples(struct fitting *f, const struct fit_rank *rank, size_t kept, struct fitted *fitted)
{
	bool any = false;
	int err = 0;

	fitted->samples = kept;
	fitted->other = 0;
	for (size_t g = 0; g < rank->count && !err; g++)
		for (uint32_t i = 0; i < rank->groups[g].count && !err; i++) {
			size_t sample = rank->order[rank->groups[g].first + i].sample;

			if (g < kept)
				err = add_sample(f, sample);
			else
				add_other(f, sample);
		}
	fitted->other = rank->count - kept;
	for (size_t t = 0; t < f->out_types; t++)
		any = any || f->other[t];
	if (!err && any) {
		uint32_t location = marker(f, "[other]", OTHER_ADDRESS);

		err = location ? profile_add_sample(f->out, &location, 1, f->other, NULL, 0) : -ENOMEM;
	}
	return err;
}

static void fitting_fini(struct fitting *f)
{
	profile_free(f->out);
	free(f->mappings);
	free(f->functions);
	free(f->locations);
	free(f->stack);
	free(f->labels);
	free(f->names);
	free(f->values);
	free(f->other);
}

/* The profile with its `kept` largest groups, encoded. */
static int build(
    const struct fit_input *input, const struct fit_rank *rank, size_t kept, struct fitted *fitted)
{
	const struct profile *in = input->profile;
	struct fitting f = {
	    .input = input, .out = profile_new(), .types = profile_sample_type_count(input->profile)};
	int err;

	for (size_t t = 0; t < f.types; t++)
		f.out_types += input->types[t];
	f.mappings = calloc((size_t)profile_mapping_count(in) + 1, sizeof(*f.mappings));
	f.functions = calloc((size_t)profile_function_count(in) + 1, sizeof(*f.functions));
	f.locations = calloc((size_t)profile_location_count(in) + 1, sizeof(*f.locations));
	f.values = calloc(f.types + 1, sizeof(*f.values));
	f.other = calloc(f.types + 1, sizeof(*f.other));
	err = f.out && f.mappings && f.functions && f.locations && f.values && f.other ? 0 : -ENOMEM;
	if (!err) {
		add_header(&f);
		err = add_samples(&f, rank, kept, fitted);
	}
	if (!err) {
		profile_compute_mapping_flags(f.out);
		err = encode_profile(f.out, &fitted->bytes, &fitted->length);
	}
	fitted->stacks_cut = f.stacks_cut;
	fitted->strings_cut = f.strings_cut;
	fitting_fini(&f);
	return err;
}

/* Fewer samples for the next try, by how much too large this one was. */
static size_t fewer(size_t kept, size_t length, size_t limit)
{
	size_t next = (size_t)((double)kept * (double)limit / (double)length * 0.97);

	return next < kept ? next : kept - 1;
}

int fit(const struct fit_input *input, struct fitted *fitted)
{
	struct fit_rank rank;
	size_t kept;
	int err = fit_rank_make(&rank, input);

	*fitted = (struct fitted){0};
	if (err)
		return err;
	kept = rank.count <= input->limits->samples ? rank.count : input->limits->samples - 1;
	while (!(err = build(input, &rank, kept, fitted)) && fitted->length > input->limits->bytes) {
		size_t length = fitted->length;

		fitted_fini(fitted);
		if (!kept) {
			err = -EFBIG;
			break;
		}
		kept = fewer(kept, length, input->limits->bytes);
	}
	for (size_t g = kept; g < rank.count && !err; g++)
		fitted->other_share += rank.groups[g].share;
	if (fitted->other_share > 1)
		fitted->other_share = 1;
	fit_rank_fini(&rank);
	return err;
}
