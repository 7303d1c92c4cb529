/* SPDX-License-Identifier: Apache-2.0 */
#include "pprof/analysis/filtered_profile.h"

#include "pprof/analysis/filter.h"
#include "pprof/analysis/frames.h"
#include "pprof/analysis/late_names.h"
#include "pprof/analysis/prune.h"
#include "pprof/model/origin.h"
#include "pprof/model/profile.h"
#include "pprof/model/sample_types.h"
#include "pprof/table/array.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

struct filtering {
	const struct profile *in;
	struct profile *out;
	const struct filter *filter;
	const struct late_names *names;
	struct origin origin;
	struct prune prune;
	struct frames frames;
	unsigned int *marks; /* by location id: of the lines that are shown, or-ed together */
	uint32_t *locations; /* in out, by id; 0: all of it is hidden */
	uint32_t hidden;     /* the location "[hidden]"; 0: none yet */
	uint32_t *stack;
	struct profile_label *labels;
	size_t stack_room, label_room;
};

/* ---- locations */

/* Numbers of the frames of a location's lines, from the first that is shown. As traces do it: what is called
 * the same is one frame, and has the marks of all. */
static int add_frames(struct filtering *e, uint32_t id, uint32_t *numbers)
{
	struct profile_location location = profile_location(e->in, id);
	const char *module = location.mapping ? profile_mapping(e->in, location.mapping).filename : "";
	int err = 0;

	if (!location.line_count)
		return frames_add(&e->frames, "", "", module, 0, numbers);
	for (size_t i = prune_lines(&e->prune, id); i < location.line_count && !err; i++) {
		struct profile_function function = profile_function(e->in, location.lines[i].function);

		err = frames_add(&e->frames, function.name, function.filename, module, 0, &numbers[i]);
	}
	return err;
}

/* Without the lines that are hidden. What is cut off is not shown, so it is not looked at. */
static int add_location(struct filtering *e, uint32_t id, const uint32_t *numbers, struct profile_line *lines)
{
	struct profile_location location = profile_location(e->in, id);
	size_t cut = prune_lines(&e->prune, id), kept = 0;

	if (!location.line_count)
		e->marks[id] = e->frames.rows[numbers[0]].marks;
	for (size_t i = 0; i < location.line_count; i++) {
		unsigned int marks = i < cut ? 0 : e->frames.rows[numbers[i]].marks;

		e->marks[id] |= marks;
		if (!(marks & FILTER_HIDE))
			lines[kept++] = location.lines[i];
	}
	if (location.line_count ? !kept : (e->marks[id] & FILTER_HIDE) != 0)
		return 0;
	location.lines = lines;
	location.line_count = kept;
	e->locations[id] = profile_add_location(e->out, &location);
	return e->locations[id] ? 0 : profile_error(e->out);
}

static int add_locations(struct filtering *e)
{
	uint32_t count = profile_location_count(e->in), *numbers = NULL;
	struct profile_line *lines = NULL;
	size_t all = 0, most = 0, *starts = calloc((size_t)count + 2, sizeof(*starts));
	int err = starts ? 0 : -ENOMEM;

	for (uint32_t id = 1; id <= count && !err; id++) {
		size_t line_count = profile_location(e->in, id).line_count;

		starts[id] = all;
		all += line_count ? line_count : 1;
		most = line_count > most ? line_count : most;
	}
	numbers = calloc(all + 1, sizeof(*numbers));
	lines = calloc(most + 1, sizeof(*lines));
	err = err ? err : numbers && lines ? 0 : -ENOMEM;
	/* All marks first, for those of one name. */
	for (uint32_t id = 1; id <= count && !err; id++)
		err = add_frames(e, id, numbers + starts[id]);
	for (uint32_t id = 1; id <= count && !err; id++)
		err = add_location(e, id, numbers + starts[id], lines);
	free(starts);
	free(numbers);
	free(lines);
	return err;
}

/* In the first mapping, because readers expect one. */
static uint32_t hidden_location(struct filtering *e)
{
	const struct profile_function function = {.name = "[hidden]", .system_name = "[hidden]"};

	if (!e->hidden) {
		const struct profile_line line = {.function = profile_add_function(e->out, &function)};
		const uint32_t mapping = profile_mapping_count(e->out) ? 1 : 0;
		const struct profile_location location = {.mapping = mapping,
		    .address = mapping ? profile_mapping(e->out, mapping).start : 0,
		    .lines = &line,
		    .line_count = 1};

		e->hidden = line.function ? profile_add_location(e->out, &location) : 0;
	}
	return e->hidden;
}

/* ---- samples */

static double value_of(const struct filtering *e, const struct profile_sample *sample, enum sample_type type)
{
	const size_t index = sample_type_find(e->in, type);

	return index == SIZE_MAX ? 0 : (double)sample->values[index];
}

static bool is_selected(const struct filtering *e, size_t index, const struct profile_sample *sample)
{
	const struct filter_block block = {filter_size(e->in, index),
	    value_of(e, sample, SAMPLE_TYPE_ALLOC_OBJECTS), value_of(e, sample, SAMPLE_TYPE_ALLOC_SPACE),
	    value_of(e, sample, SAMPLE_TYPE_INUSE_OBJECTS), value_of(e, sample, SAMPLE_TYPE_INUSE_SPACE)};
	const char *thread = late_names_of_thread(e->names, e->in, e->origin.session, index);
	unsigned int marks = 0;

	for (size_t i = prune_stack(&e->prune, sample); i < sample->depth; i++)
		marks |= e->marks[sample->locations[i]];
	return filter_stack(e->filter, marks) && filter_labels(e->filter, e->in, index, thread) &&
	    filter_size_fits(e->filter, &block);
}

static int add_sample(struct filtering *e, size_t index)
{
	struct profile_sample sample = profile_sample(e->in, index);
	const size_t cut = prune_stack(&e->prune, &sample);
	size_t depth = 0, shown = 0;

	if (!is_selected(e, index, &sample))
		return 0;
	if (array_reserve(&e->stack, &e->stack_room, sample.depth + 1, sizeof(*e->stack)) ||
	    array_reserve(&e->labels, &e->label_room, sample.label_count + 1, sizeof(*e->labels)))
		return -ENOMEM;
	for (size_t i = 0; i < sample.depth; i++) {
		if (!e->locations[sample.locations[i]])
			continue;
		e->stack[depth++] = e->locations[sample.locations[i]];
		shown += i >= cut;
	}
	if (!shown && sample.depth > cut) { /* it keeps its bytes, and needs a frame to show them */
		depth = 1;
		e->stack[0] = hidden_location(e);
		if (!e->stack[0])
			return profile_error(e->out);
	}
	for (size_t i = 0; i < sample.label_count; i++)
		e->labels[i] = profile_sample_label(e->in, index, i);
	return profile_add_sample(e->out, e->stack, depth, sample.values, e->labels, sample.label_count);
}

static int fill(struct filtering *e)
{
	uint32_t count = profile_location_count(e->in);
	int err = prune_init(&e->prune, e->in);

	e->frames.names = FRAMES_SHORT;
	e->frames.filter = e->filter;
	e->marks = calloc((size_t)count + 1, sizeof(*e->marks));
	e->locations = calloc((size_t)count + 1, sizeof(*e->locations));
	if (!e->marks || !e->locations)
		err = -ENOMEM;
	if (err)
		return err;
	origin_read(&e->origin, e->in);
	profile_copy_header(e->out, e->in);
	profile_copy_functions(e->out, e->in);
	err = profile_error(e->out);
	if (!err)
		err = add_locations(e);
	for (size_t i = 0; i < profile_sample_count(e->in) && !err; i++)
		err = add_sample(e, i);
	return err ? err : profile_error(e->out);
}

int filtered_profile_make(const struct profile *profile, const struct filter *filter,
    const struct late_names *names, struct profile **out)
{
	struct filtering e = {.in = profile, .filter = filter, .names = names, .out = profile_new()};
	int err = e.out ? fill(&e) : -ENOMEM;

	prune_fini(&e.prune);
	frames_fini(&e.frames);
	free(e.marks);
	free(e.locations);
	free(e.stack);
	free(e.labels);
	if (err) {
		profile_free(e.out);
		return err;
	}
	profile_compute_mapping_flags(e.out);
	*out = e.out;
	return 0;
}
