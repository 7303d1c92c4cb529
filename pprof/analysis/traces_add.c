/* SPDX-License-Identifier: Apache-2.0 */
/* Adds a profile to traces: its frames, its stacks as rows, its values. */
#include "pprof/analysis/traces.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "pprof/analysis/filter.h"
#include "pprof/analysis/late_names.h"
#include "pprof/analysis/prune.h"
#include "pprof/analysis/shared_samples.h"
#include "pprof/model/anonymous.h"
#include "pprof/model/origin.h"
#include "pprof/model/profile.h"
#include "pprof/table/array.h"

/* ---- the frames of each location */

/* Frame numbers of every location: frames[starts[id] .. starts[id + 1]), innermost first. */
struct shown {
	uint32_t *frames;
	size_t *starts, count, capacity;
	uint64_t process; /* of the profile, late_names_process() */
};

static int shown_location(
    struct traces *t, const struct profile *p, uint32_t id, uint32_t cut, struct shown *shown)
{
	struct profile_location location = profile_location(p, id);
	const char *module = location.mapping ? profile_mapping(p, location.mapping).filename : "";
	int err = 0;

	if (array_reserve(&shown->frames, &shown->capacity, shown->count + location.line_count + 1,
	        sizeof(*shown->frames)))
		return -ENOMEM;
	if (!location.line_count)
		return frames_add(&t->frames, "", "", module, 0, &shown->frames[shown->count++]);
	const char *late = late_names_of_code(&t->code_names, p, shown->process, id);

	for (size_t i = cut; i < location.line_count && !err; i++) {
		struct profile_function function = profile_function(p, location.lines[i].function);

		err = frames_add(&t->frames, late ? late : function.name, function.filename, module,
		    location.lines[i].line, &shown->frames[shown->count++]);
	}
	return err;
}

static int shown_make(
    struct traces *t, const struct profile *p, const struct prune *prune, struct shown *shown)
{
	uint32_t count = profile_location_count(p);
	int err = 0;

	memset(shown, 0, sizeof(*shown));
	shown->process = late_names_process(p);
	shown->starts = calloc((size_t)count + 2, sizeof(*shown->starts));
	if (!shown->starts)
		return -ENOMEM;
	for (uint32_t id = 1; id <= count && !err; id++) {
		shown->starts[id] = shown->count;
		err = shown_location(t, p, id, prune_lines(prune, id), shown);
		if (!err)
			err = traces_check_memory(
			    t, profile_bytes(p) + shown->capacity * sizeof(*shown->frames));
	}
	shown->starts[count + 1] = shown->count;
	return err;
}

/* ---- rows */

/* The thread and the age of a sample's blocks, as names: the rows of one stack may be kept apart by them. */
struct split {
	uint32_t thread, age; /* numbers of strings; 0: the sample does not tell */
};

/* thread: the name of its thread, NULL unknown. */
static int split_make(struct split *split, struct intern *strings, const struct profile *profile,
    size_t sample, const char *thread, bool anonymize)
{
	char text[GROUPING_TEXT_BYTES], hashed[ANONYMOUS_BYTES];
	struct profile_label label;
	const char *name = text;
	int err = 0;

	*split = (struct split){0, 0};
	if (thread || filter_label(profile, sample, "thread_id", &label)) {
		grouping_name(GROUP_THREAD, profile, sample, thread, text);
		if (anonymize)
			name = anonymous_name('t', text, hashed);
		err = intern_add(strings, name, strlen(name), &split->thread);
	}
	if (err || !filter_label(profile, sample, "age", &label))
		return err;
	grouping_name(GROUP_AGE, profile, sample, NULL, text);
	return intern_add(strings, text, strlen(text), &split->age);
}

/* What array_reserve() would add at most. */
static size_t growth_bytes(size_t capacity, size_t need, size_t item_bytes)
{
	if (need <= capacity)
		return 0;
	return (need > capacity + capacity / 2 ? need - capacity : capacity / 2) * item_bytes;
}

static int row_new(struct traces *t, uint32_t fold, size_t depth, struct split split, uint32_t *row)
{
	size_t cells = ((size_t)t->row_count + 1) * t->column_count, values = cells * t->slot_count;
	size_t old_cells = (size_t)t->row_count * t->column_count, old_values = old_cells * t->slot_count;

	if (t->row_count == UINT32_MAX || depth > UINT32_MAX)
		return -EOVERFLOW;
	/* With a thousand columns a row takes 100 KB: the end of the profile is too late to look. */
	if (traces_check_memory(t,
	        growth_bytes(t->row_capacity, (size_t)t->row_count + 1, sizeof(*t->rows)) +
	            growth_bytes(t->value_capacity, values, sizeof(*t->values)) +
	            growth_bytes(t->estimate_capacity, cells * SIDE_COUNT, sizeof(*t->estimates)) +
	            growth_bytes(t->stack_capacity, t->stack_count + depth, sizeof(*t->stacks))))
		return -EFBIG;
	if (array_reserve(&t->rows, &t->row_capacity, (size_t)t->row_count + 1, sizeof(*t->rows)) ||
	    array_reserve(&t->stacks, &t->stack_capacity, t->stack_count + depth, sizeof(*t->stacks)) ||
	    array_reserve(&t->values, &t->value_capacity, values, sizeof(*t->values)) ||
	    array_reserve(&t->estimates, &t->estimate_capacity, cells * SIDE_COUNT, sizeof(*t->estimates)) ||
	    index_add(&t->row_index, fold, t->row_count + 1))
		return -ENOMEM;
	memset(t->values + old_values, 0, (values - old_values) * sizeof(*t->values));
	memset(t->estimates + old_cells * SIDE_COUNT, 0,
	    (cells - old_cells) * SIDE_COUNT * sizeof(*t->estimates));
	t->rows[t->row_count] = (struct traces_row){
	    .stack = t->stack_count, .depth = (uint32_t)depth, .thread = split.thread, .age = split.age};
	if (depth)
		memcpy(t->stacks + t->stack_count, t->path, depth * sizeof(*t->path));
	t->stack_count += depth;
	*row = t->row_count++;
	return 0;
}

static int row_find(struct traces *t, size_t depth, struct split split, uint32_t *row)
{
	uint64_t hash = index_mix_bytes(index_seed(), t->path, depth * sizeof(*t->path));
	uint32_t fold = index_fold(
	             t->options.split ? index_mix(hash, (uint64_t)split.thread << 32 | split.age) : hash),
	         id;
	size_t cursor = index_start(fold);

	while ((id = index_next(&t->row_index, fold, &cursor))) {
		if (t->rows[id - 1].depth == depth && t->rows[id - 1].thread == split.thread &&
		    t->rows[id - 1].age == split.age &&
		    (!depth || memcmp(traces_stack(t, id - 1), t->path, depth * sizeof(*t->path)) == 0)) {
			*row = id - 1;
			return 0;
		}
	}
	return row_new(t, fold, depth, split, row);
}

struct adding {
	const struct profile *profile;
	struct prune prune;
	struct shown shown;
	size_t column;
	int *types; /* index of the type in the traces, by index in the profile; -1 for none */
	double period_bytes;
	char session[64]; /* struct origin's */
};

static void path_add(struct traces *t, uint32_t frame, size_t *depth, unsigned int *marks)
{
	*marks |= t->frames.rows[frame].marks;
	if ((t->frames.rows[frame].marks & FILTER_HIDE) ||
	    (t->options.fold && *depth && t->path[*depth - 1] == frame))
		return;
	t->path[(*depth)++] = frame;
}

static int path_make(struct traces *t, const struct adding *a, const struct profile_sample *sample,
    size_t *depth, unsigned int *marks)
{
	*depth = 0;
	*marks = 0;
	for (size_t i = prune_stack(&a->prune, sample); i < sample->depth; i++) {
		size_t from = a->shown.starts[sample->locations[i]],
		       to = a->shown.starts[sample->locations[i] + 1];

		/* A hostile location may have a million lines, and occur a million times in a stack. */
		if (*depth + (to - from) >= t->path_capacity &&
		    traces_check_memory(t, (*depth + (to - from)) * sizeof(*t->path)))
			return -EFBIG;
		if (array_reserve(&t->path, &t->path_capacity, *depth + (to - from) + 1, sizeof(*t->path)))
			return -ENOMEM;
		for (; from < to; from++)
			path_add(t, a->shown.frames[from], depth, marks);
	}
	if (*depth || !(*marks & FILTER_HIDE))
		return 0;
	/* A stack that is hidden as a whole keeps its bytes, and needs a frame to show them. */
	if (array_reserve(&t->path, &t->path_capacity, 1, sizeof(*t->path)))
		return -ENOMEM;
	*depth = 1;
	return frames_add(&t->frames, "[hidden]", "", "", 0, t->path);
}

static double value_of(const struct traces *t, const int64_t *values, enum measure_kind kind)
{
	return t->kinds[kind] < 0 ? 0 : (double)values[t->kinds[kind]];
}

static void estimates_make(const struct traces *t, const struct adding *a, const int64_t *values, double size,
    struct estimate sides[SIDE_COUNT])
{
	sides[SIDE_ALLOC] = sides[SIDE_INUSE] = (struct estimate){0, 0, 0};
	if (a->period_bytes <= 0)
		return;
	sides[SIDE_ALLOC] = estimate_of(
	    value_of(t, values, MEASURE_ALLOC), value_of(t, values, MEASURE_OBJECTS), size, a->period_bytes);
	sides[SIDE_INUSE] = estimate_of(value_of(t, values, MEASURE_INUSE),
	    value_of(t, values, MEASURE_INUSE_OBJECTS), size, a->period_bytes);
}

static void estimates_add(struct estimate *sums, const struct estimate sides[SIDE_COUNT])
{
	for (int side = 0; side < SIDE_COUNT; side++)
		estimate_add(&sums[side], sides[side]);
}

static bool size_fits(const struct traces *t, const int64_t *values, double size)
{
	const struct filter_block block = {size, value_of(t, values, MEASURE_OBJECTS),
	    value_of(t, values, MEASURE_ALLOC), value_of(t, values, MEASURE_INUSE_OBJECTS),
	    value_of(t, values, MEASURE_INUSE)};

	return filter_size_fits(t->options.filter, &block);
}

/* Objects of a sample that the sampler has labelled as temporary. */
static void temporary_set(struct traces *t, int64_t *values)
{
	size_t slot = t->type_count;

	if (t->kinds[MEASURE_OBJECTS] < 0)
		return;
	t->kinds[MEASURE_TEMPORARY] = (int)slot;
	t->types[slot] = "temporary_objects";
	t->units[slot] = t->units[t->kinds[MEASURE_OBJECTS]];
	values[slot] = values[t->kinds[MEASURE_OBJECTS]];
}

/* Copies of a parent's blocks are in use, but are no allocations of the process: what was freed is what was
 * allocated and is not in use, without them. */
static void inherited_set(const struct traces *t, int64_t *values)
{
	if (t->kinds[MEASURE_FREED] >= 0)
		values[t->type_count + 1] = values[t->kinds[MEASURE_INUSE_OBJECTS]];
}

/* Makes the path one frame, the sample's group. */
static int path_group(struct traces *t, const struct adding *a, size_t index, size_t *depth)
{
	char text[GROUPING_TEXT_BYTES];

	if (t->options.by == GROUP_FUNCTION)
		return 0;
	if (array_reserve(&t->path, &t->path_capacity, 1, sizeof(*t->path)))
		return -ENOMEM;
	grouping_name(t->options.by, a->profile, index,
	    late_names_of_thread(&t->thread_names, a->profile, a->session, index), text);
	*depth = 1;
	return frames_add(&t->frames, text, "", "", 0, t->path);
}

static bool is_selected(
    const struct traces *t, const struct adding *a, size_t index, const int64_t *values, unsigned int marks)
{
	const struct filter *filter = t->options.filter;
	const char *thread = filter && filter->thread
	    ? late_names_of_thread(&t->thread_names, a->profile, a->session, index)
	    : NULL;

	return !filter ||
	    (filter_stack(filter, marks) && filter_labels(filter, a->profile, index, thread) &&
	        size_fits(t, values, filter_size(a->profile, index)));
}

/* Into its row, which is returned. */
static int sample_select(struct traces *t, const struct adding *a, size_t index, const int64_t *values,
    const struct estimate sides[SIDE_COUNT], uint64_t unit, size_t depth, uint32_t *row)
{
	struct split split = {0, 0};
	size_t cell;
	int err = path_group(t, a, index, &depth);

	if (!err && t->options.split)
		err = split_make(&split, &t->strings, a->profile, index,
		    late_names_of_thread(&t->thread_names, a->profile, a->session, index),
		    t->options.anonymize);
	if (!err)
		err = row_find(t, depth, split, row);
	if (err)
		return err;
	/* Linear in the values, so that it does not matter how many samples a stack is split into. */
	for (size_t i = 0; i < t->slot_count; i++)
		t->prints[a->column * t->slot_count + i] += (unit | 1) * (uint64_t)values[i];
	cell = (size_t)*row * t->column_count + a->column;
	for (size_t i = 0; i < t->slot_count; i++)
		traces_sum(&t->values[cell * t->slot_count + i], values[i]);
	estimates_add(t->estimates + cell * SIDE_COUNT, sides);
	estimates_add(t->selected_estimates + a->column * SIDE_COUNT, sides);
	return 0;
}

static int sample_add(struct traces *t, const struct adding *a, size_t index, int64_t *values)
{
	struct profile_sample sample = profile_sample(a->profile, index);
	struct estimate sides[SIDE_COUNT];
	struct profile_label lifetime, inherited;
	unsigned int marks;
	uint64_t unit;
	size_t depth;
	uint32_t row = OVERLAP_NO_ROW;
	int err;

	memset(values, 0, t->slot_count * sizeof(*values));
	for (size_t i = 0; i < profile_sample_type_count(a->profile); i++)
		if (a->types[i] >= 0)
			values[a->types[i]] = sample.values[i];
	if (filter_label(a->profile, index, "lifetime", &lifetime) && lifetime.str)
		temporary_set(t, values);
	if (filter_label(a->profile, index, "inherited", &inherited))
		inherited_set(t, values);
	for (size_t i = 0; i < t->slot_count; i++)
		traces_sum(&t->all[a->column * t->slot_count + i], values[i]);
	if (profile_sample_is_zero(a->profile, index))
		return 0;
	estimates_make(t, a, values, filter_size(a->profile, index), sides);
	estimates_add(t->all_estimates + a->column * SIDE_COUNT, sides);
	err = path_make(t, a, &sample, &depth, &marks);
	if (err)
		return err;
	unit = index_mix_bytes(index_seed(), t->path, depth * sizeof(*t->path));
	if (is_selected(t, a, index, values, marks))
		err = sample_select(t, a, index, values, sides, unit, depth, &row);
	return err ? err : shared_samples_add(t->overlap, a->profile, index, a->column, unit, row, sides);
}

/* By position if the name is the same, else by name. The search is bounded: only a hostile profile has
 * hundreds of types. */
static int types_match(const struct traces *t, const struct profile *p, int *types)
{
	size_t searched = t->type_count < 256 ? t->type_count : 256, matched = 0;

	for (size_t i = 0; i < profile_sample_type_count(p); i++) {
		const char *name = profile_sample_type(p, i).type;

		types[i] = i < t->type_count && strcmp(t->types[i], name) == 0 ? (int)i : -1;
		for (size_t j = 0; j < searched && types[i] < 0; j++)
			if (strcmp(t->types[j], name) == 0)
				types[i] = (int)j;
		matched += types[i] >= 0;
	}
	return matched || !profile_sample_type_count(p) ? 0 : -ENODATA;
}

static void session_read(struct adding *a, const struct profile *profile)
{
	struct origin origin;

	origin_read(&origin, profile);
	memcpy(a->session, origin.session, sizeof(a->session));
}

/* Types of what is in use match none, so they are 0 everywhere. */
static void drop_inuse(const struct traces *t, const struct profile *profile, int *types)
{
	for (size_t i = 0; i < profile_sample_type_count(profile); i++)
		if (types[i] >= 0 &&
		    (types[i] == t->kinds[MEASURE_INUSE] || types[i] == t->kinds[MEASURE_INUSE_OBJECTS]))
			types[i] = -1;
}

static int profile_add(struct traces *t, const struct profile *profile, size_t column, bool ended)
{
	struct adding a = {.profile = profile, .column = column};
	size_t count = profile_sample_type_count(profile), held;
	int64_t *values = calloc(t->slot_count + 1, sizeof(*values));
	int err = values ? 0 : -ENOMEM;

	a.types = calloc(count + 1, sizeof(*a.types));
	if (!a.types)
		err = -ENOMEM;
	if (!err)
		err = types_match(t, profile, a.types);
	if (!err && ended)
		drop_inuse(t, profile, a.types);
	if (!err)
		err = prune_init(&a.prune, profile);
	if (!err)
		err = shown_make(t, profile, &a.prune, &a.shown);
	if (strcmp(profile_period_type(profile).unit, "bytes") == 0)
		a.period_bytes = (double)profile_period(profile);
	t->unsure = t->unsure || a.period_bytes <= 0;
	session_read(&a, profile);
	shared_samples_begin(t->overlap, profile, column);
	held = profile_bytes(profile) + a.shown.capacity * sizeof(*a.shown.frames);
	for (size_t i = 0; i < profile_sample_count(profile) && !err; i++)
		err = sample_add(t, &a, i, values);
	if (!err)
		err = traces_check_memory(t, held);
	prune_fini(&a.prune);
	free(a.shown.frames);
	free(a.shown.starts);
	free(a.types);
	free(values);
	return err;
}

int traces_add(struct traces *t, const struct profile *profile, size_t column)
{
	return profile_add(t, profile, column, false);
}

int traces_add_ended(struct traces *t, const struct profile *profile, size_t column)
{
	return profile_add(t, profile, column, true);
}
