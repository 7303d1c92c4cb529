/* SPDX-License-Identifier: Apache-2.0 */
/* Making traces of profiles (which sample types, which frames, which rows), then reading their values. */
#include "pprof/analysis/traces.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "pprof/table/array.h"
#include "pprof/analysis/filter.h"
#include "pprof/profile/profile.h"
#include "pprof/analysis/prune.h"

/* ---- sample types */

/* Exact, or without "inuse_" as tcmalloc and old profiles have it; the first match counts, as in pprof. */
static int type_find(const struct traces *t, const char *name)
{
	const char *bare = strncmp(name, "inuse_", 6) == 0 ? name + 6 : name;

	for (size_t i = 0; i < t->type_count; i++)
		if (strcmp(t->types[i], name) == 0 || strcmp(t->types[i], bare) == 0)
			return (int)i;
	return -1;
}

static void kinds_find(struct traces *t)
{
	static const char *const names[MEASURE_OTHER] = {
	    [MEASURE_INUSE] = "inuse_space",
	    [MEASURE_INUSE_OBJECTS] = "inuse_objects",
	    [MEASURE_ALLOC] = "alloc_space",
	    [MEASURE_OBJECTS] = "alloc_objects",
	    [MEASURE_FREED] = "alloc_objects",
	};
	bool heap = false;

	for (size_t i = 0; i < MEASURE_OTHER; i++) {
		t->kinds[i] = names[i] ? type_find(t, names[i]) : -1;
		heap = heap || t->kinds[i] >= 0;
	}
	if (t->kinds[MEASURE_INUSE_OBJECTS] < 0)
		t->kinds[MEASURE_FREED] = -1;
	t->kinds[MEASURE_OTHER] = heap ? -1 : (int)t->default_type;
}

static const char *intern(struct traces *t, const char *text)
{
	uint32_t number;

	return intern_add(&t->strings, text, strlen(text), &number) ? NULL : intern_at(&t->strings, number);
}

int traces_init(
    struct traces *t, const struct traces_options *options, const struct profile *first, size_t column_count)
{
	size_t count = profile_sample_type_count(first);

	memset(t, 0, sizeof(*t));
	t->options = *options;
	t->frames.lines = options->lines;
	t->frames.anonymize = options->anonymize;
	t->frames.names = options->by == GROUP_FUNCTION ? options->names : FRAMES_FULL;
	t->frames.filter = options->filter;
	t->column_count = column_count;
	t->types = calloc(count + 1, sizeof(*t->types));
	t->units = calloc(count + 1, sizeof(*t->units));
	t->slot_count = count + 2;
	t->all = calloc(t->slot_count * column_count + 1, sizeof(*t->all));
	if (!t->types || !t->units || !t->all)
		return -ENOMEM;
	t->default_type = count ? count - 1 : 0;
	for (size_t i = 0; i < count; i++) {
		struct profile_value_type type = profile_sample_type(first, i);

		t->types[i] = intern(t, type.type);
		t->units[i] = intern(t, type.unit);
		if (!t->types[i] || !t->units[i])
			return -ENOMEM;
		t->type_count = i + 1;
		if (strcmp(type.type, profile_default_sample_type(first)) == 0)
			t->default_type = i;
	}
	kinds_find(t);
	return 0;
}

void traces_fini(struct traces *t)
{
	intern_fini(&t->strings);
	frames_fini(&t->frames);
	index_fini(&t->row_index);
	free(t->rows);
	free(t->stacks);
	free(t->types);
	free(t->units);
	free(t->values);
	free(t->estimates);
	free(t->all);
	free(t->path);
	memset(t, 0, sizeof(*t));
}

int traces_check_memory(const struct traces *t, size_t more)
{
	size_t bytes = intern_bytes(&t->strings) + frames_bytes(&t->frames) + index_bytes(&t->row_index) +
	    t->row_capacity * sizeof(*t->rows) + t->stack_capacity * sizeof(*t->stacks) +
	    t->value_capacity * sizeof(*t->values) + t->estimate_capacity * sizeof(*t->estimates) +
	    t->path_capacity * sizeof(*t->path);

	return t->options.max_bytes && bytes + more > t->options.max_bytes ? -EFBIG : 0;
}

/* ---- the frames of each location */

/* Frame numbers of every location: frames[starts[id] .. starts[id + 1]), innermost first. */
struct shown {
	uint32_t *frames;
	size_t *starts, count, capacity;
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
	for (size_t i = cut; i < location.line_count && !err; i++) {
		struct profile_function function = profile_function(p, location.lines[i].function);

		err = frames_add(&t->frames, function.name, function.filename, module, location.lines[i].line,
		    &shown->frames[shown->count++]);
	}
	return err;
}

static int shown_make(
    struct traces *t, const struct profile *p, const struct prune *prune, struct shown *shown)
{
	uint32_t count = profile_location_count(p);
	int err = 0;

	memset(shown, 0, sizeof(*shown));
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

static int row_new(struct traces *t, uint32_t fold, size_t depth, uint32_t *row)
{
	size_t cells = ((size_t)t->row_count + 1) * t->column_count, values = cells * t->slot_count;
	size_t old_cells = (size_t)t->row_count * t->column_count, old_values = old_cells * t->slot_count;

	if (t->row_count == UINT32_MAX || depth > UINT32_MAX)
		return -EOVERFLOW;
	if (array_reserve(&t->rows, &t->row_capacity, (size_t)t->row_count + 1, sizeof(*t->rows)) ||
	    array_reserve(&t->stacks, &t->stack_capacity, t->stack_count + depth, sizeof(*t->stacks)) ||
	    array_reserve(&t->values, &t->value_capacity, values, sizeof(*t->values)) ||
	    array_reserve(&t->estimates, &t->estimate_capacity, cells * SIDE_COUNT, sizeof(*t->estimates)) ||
	    index_add(&t->row_index, fold, t->row_count + 1))
		return -ENOMEM;
	memset(t->values + old_values, 0, (values - old_values) * sizeof(*t->values));
	memset(t->estimates + old_cells * SIDE_COUNT, 0,
	    (cells - old_cells) * SIDE_COUNT * sizeof(*t->estimates));
	t->rows[t->row_count] = (struct traces_row){t->stack_count, (uint32_t)depth, 0, 0};
	if (depth)
		memcpy(t->stacks + t->stack_count, t->path, depth * sizeof(*t->path));
	t->stack_count += depth;
	*row = t->row_count++;
	return 0;
}

static int row_find(struct traces *t, size_t depth, uint32_t *row)
{
	uint32_t fold = index_fold(index_mix_bytes(index_seed(), t->path, depth * sizeof(*t->path))), id;
	size_t cursor = index_start(fold);

	while ((id = index_next(&t->row_index, fold, &cursor))) {
		if (t->rows[id - 1].depth == depth &&
		    (!depth || memcmp(traces_stack(t, id - 1), t->path, depth * sizeof(*t->path)) == 0)) {
			*row = id - 1;
			return 0;
		}
	}
	return row_new(t, fold, depth, row);
}

struct adding {
	const struct profile *profile;
	struct prune prune;
	struct shown shown;
	size_t column;
	int *types; /* index of the type in the traces, by index in the profile; -1 for none */
	double period_bytes;
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

static void estimates_add(
    struct traces *t, uint32_t row, const struct adding *a, const int64_t *values, double size)
{
	struct estimate *cell = t->estimates + ((size_t)row * t->column_count + a->column) * SIDE_COUNT;

	if (a->period_bytes <= 0)
		return;
	estimate_add(&cell[SIDE_ALLOC],
	    estimate_of(value_of(t, values, MEASURE_ALLOC), value_of(t, values, MEASURE_OBJECTS), size,
	        a->period_bytes));
	estimate_add(&cell[SIDE_INUSE],
	    estimate_of(value_of(t, values, MEASURE_INUSE), value_of(t, values, MEASURE_INUSE_OBJECTS), size,
	        a->period_bytes));
}

static bool size_fits(const struct traces *t, const int64_t *values, double size)
{
	const struct filter *filter = t->options.filter;
	double objects = value_of(t, values, MEASURE_OBJECTS), bytes = value_of(t, values, MEASURE_ALLOC);

	if (!filter->by_size)
		return true;
	if (objects <= 0) {
		objects = value_of(t, values, MEASURE_INUSE_OBJECTS);
		bytes = value_of(t, values, MEASURE_INUSE);
	}
	if (!(size > 0) && objects > 0)
		size = bytes / objects;
	return size >= filter->size_min && size <= filter->size_max;
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
	grouping_name(t->options.by, a->profile, index, text);
	*depth = 1;
	return frames_add(&t->frames, text, "", "", 0, t->path);
}

static int sample_add(struct traces *t, const struct adding *a, size_t index, int64_t *values)
{
	struct profile_sample sample = profile_sample(a->profile, index);
	struct profile_label lifetime, inherited;
	double size = filter_size(a->profile, index);
	unsigned int marks;
	size_t depth;
	uint32_t row;
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
	err = path_make(t, a, &sample, &depth, &marks);
	if (err)
		return err;
	if (t->options.filter &&
	    (!filter_stack(t->options.filter, marks) ||
	        !filter_labels(t->options.filter, a->profile, index) || !size_fits(t, values, size)))
		return 0;
	err = path_group(t, a, index, &depth);
	if (!err)
		err = row_find(t, depth, &row);
	if (err)
		return err;
	for (size_t i = 0; i < t->slot_count; i++)
		traces_sum(
		    &t->values[((size_t)row * t->column_count + a->column) * t->slot_count + i], values[i]);
	estimates_add(t, row, a, values, size);
	return 0;
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

int traces_add(struct traces *t, const struct profile *profile, size_t column)
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
	if (!err)
		err = prune_init(&a.prune, profile);
	if (!err)
		err = shown_make(t, profile, &a.prune, &a.shown);
	if (strcmp(profile_period_type(profile).unit, "bytes") == 0)
		a.period_bytes = (double)profile_period(profile);
	t->unsure = t->unsure || a.period_bytes <= 0;
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

/* ---- reading */

bool traces_has(const struct traces *t, enum measure_kind kind)
{
	return t->kinds[kind] >= 0;
}

enum measure_kind traces_default_kind(const struct traces *t)
{
	for (int kind = 0; kind < MEASURE_COUNT; kind++)
		if (traces_has(t, (enum measure_kind)kind))
			return (enum measure_kind)kind;
	return MEASURE_OTHER;
}

static int64_t read_values(const struct traces *t, const int64_t *values, enum measure_kind kind)
{
	int64_t difference;

	if (t->kinds[kind] < 0)
		return 0;
	if (kind != MEASURE_FREED)
		return values[t->kinds[kind]];
	if (__builtin_sub_overflow(
	        values[t->kinds[MEASURE_OBJECTS]], values[t->kinds[MEASURE_INUSE_OBJECTS]], &difference))
		return INT64_MAX;
	traces_sum(&difference, values[t->type_count + 1]);
	return difference > 0 ? difference : 0;
}

int64_t traces_value(const struct traces *t, size_t row, size_t column, enum measure_kind kind)
{
	return read_values(t, t->values + (row * t->column_count + column) * t->slot_count, kind);
}

int64_t traces_all(const struct traces *t, size_t column, enum measure_kind kind)
{
	return read_values(t, t->all + column * t->slot_count, kind);
}

/* Freed blocks are a share of the allocated ones and are assumed to have the same sizes: both samples and
 * variance are scaled by that share. */
struct traces_doubt traces_doubt(const struct traces *t, size_t row, size_t column, enum measure_kind kind)
{
	const struct estimate *cell = t->estimates + (row * t->column_count + column) * SIDE_COUNT;
	const struct estimate *side =
	    &cell[kind == MEASURE_INUSE || kind == MEASURE_INUSE_OBJECTS ? SIDE_INUSE : SIDE_ALLOC];
	struct traces_doubt doubt = {side->samples, side->objects_variance};

	if (kind == MEASURE_OTHER)
		return (struct traces_doubt){0, 0};
	if (kind == MEASURE_INUSE || kind == MEASURE_ALLOC)
		doubt.variance = side->bytes_variance;
	if (kind == MEASURE_FREED || kind == MEASURE_TEMPORARY) {
		double all = (double)traces_value(t, row, column, MEASURE_OBJECTS);
		double share = all > 0 ? (double)traces_value(t, row, column, kind) / all : 0;

		doubt.samples *= share;
		doubt.variance *= share;
	}
	return doubt;
}

const char *traces_kind_word(enum measure_kind kind)
{
	static const char *const words[MEASURE_COUNT] = {
	    [MEASURE_INUSE] = "inuse",
	    [MEASURE_INUSE_OBJECTS] = "inuse-objects",
	    [MEASURE_ALLOC] = "alloc",
	    [MEASURE_OBJECTS] = "objects",
	    [MEASURE_FREED] = "freed",
	    [MEASURE_TEMPORARY] = "temporary",
	    [MEASURE_OTHER] = "other",
	};

	return words[kind];
}

const char *traces_unit(const struct traces *t, enum measure_kind kind)
{
	return t->kinds[kind] < 0 ? "" : t->units[t->kinds[kind]];
}

bool traces_is_bytes(const struct traces *t, enum measure_kind kind)
{
	return strcmp(traces_unit(t, kind), "bytes") == 0;
}
