/* SPDX-License-Identifier: Apache-2.0 */
/* The profile as a whole: its header, its strings, and its tables (tables.h) behind one interface that takes
 * and gives strings. */
#include "pprof/model/profile.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "pprof/model/tables.h"
#include "pprof/table/array.h"
#include "pprof/table/intern.h"

/* Internally a string is its number in the string table; 0 is "". */

struct value_type {
	uint32_t type, unit;
};

struct profile {
	int error;
	struct intern strings;

	struct value_type *sample_types;
	size_t sample_type_count, sample_type_capacity;
	uint32_t *comments;
	size_t comment_count, comment_capacity;
	struct value_type period_type;
	uint32_t default_sample_type, drop_frames, keep_frames, doc_url;
	int64_t period, time_ns, duration_ns;

	struct mappings mappings;
	struct functions functions;
	struct locations locations;
	struct samples samples;
	struct samples_label *scratch; /* the labels of the sample being added */
	size_t scratch_capacity;
};

struct profile *profile_new(void)
{
	return calloc(1, sizeof(struct profile));
}

void profile_free(struct profile *p)
{
	if (!p)
		return;
	intern_fini(&p->strings);
	free(p->sample_types);
	free(p->comments);
	mappings_fini(&p->mappings);
	functions_fini(&p->functions);
	locations_fini(&p->locations);
	samples_fini(&p->samples);
	free(p->scratch);
	free(p);
}

int profile_error(const struct profile *p)
{
	return p->error;
}

size_t profile_bytes(const struct profile *p)
{
	return sizeof(*p) + intern_bytes(&p->strings) + p->sample_type_capacity * sizeof(*p->sample_types) +
	    p->comment_capacity * sizeof(*p->comments) + mappings_bytes(&p->mappings) +
	    functions_bytes(&p->functions) + locations_bytes(&p->locations) + samples_bytes(&p->samples) +
	    p->scratch_capacity * sizeof(*p->scratch);
}

static int fail(struct profile *p, int err)
{
	p->error = p->error ? p->error : err;
	return err;
}

static uint32_t intern_text(struct profile *p, const void *bytes, size_t len)
{
	uint32_t number;
	int err = intern_add(&p->strings, bytes, len, &number);

	if (err)
		fail(p, err);
	return number;
}

static uint32_t intern(struct profile *p, const char *string)
{
	return string ? intern_text(p, string, strlen(string)) : 0;
}

const char *profile_add_string(struct profile *p, const void *bytes, size_t len)
{
	uint32_t number = intern_text(p, bytes, len);

	return p->error ? NULL : intern_at(&p->strings, number);
}

/* ---- the header */

int profile_add_sample_type(struct profile *p, const char *type, const char *unit)
{
	if (p->samples.row_count)
		return fail(p, -EINVAL);
	if (array_reserve(&p->sample_types, &p->sample_type_capacity, p->sample_type_count + 1,
	        sizeof(*p->sample_types)))
		return fail(p, -ENOMEM);
	p->sample_types[p->sample_type_count].type = intern(p, type);
	p->sample_types[p->sample_type_count].unit = intern(p, unit);
	p->samples.type_count = ++p->sample_type_count;
	return p->error;
}

void profile_set_default_sample_type(struct profile *p, const char *type)
{
	p->default_sample_type = intern(p, type);
}

void profile_set_period(struct profile *p, const char *type, const char *unit, int64_t period)
{
	p->period_type.type = intern(p, type);
	p->period_type.unit = intern(p, unit);
	p->period = period;
}

void profile_set_time(struct profile *p, int64_t time_ns, int64_t duration_ns)
{
	p->time_ns = time_ns;
	p->duration_ns = duration_ns;
}

void profile_add_comment(struct profile *p, const char *text)
{
	if (array_reserve(&p->comments, &p->comment_capacity, p->comment_count + 1, sizeof(*p->comments)))
		fail(p, -ENOMEM);
	else
		p->comments[p->comment_count++] = intern(p, text);
}

void profile_set_drop_frames(struct profile *p, const char *regex)
{
	p->drop_frames = intern(p, regex);
}

void profile_set_keep_frames(struct profile *p, const char *regex)
{
	p->keep_frames = intern(p, regex);
}

void profile_set_doc_url(struct profile *p, const char *url)
{
	p->doc_url = intern(p, url);
}

/* ---- the tables */

/* Return value of an add: the id, or 0 after this error or an earlier one. */
static uint32_t added(struct profile *p, int err, uint32_t id)
{
	if (err)
		fail(p, err);
	return p->error ? 0 : id;
}

uint32_t profile_add_mapping(struct profile *p, const struct profile_mapping *mapping)
{
	struct mappings_row row = {
	    .start = mapping->start,
	    .limit = mapping->limit,
	    .file_offset = mapping->file_offset,
	    .filename = intern(p, mapping->filename),
	    .build_id = intern(p, mapping->build_id),
	    .flags = mapping->flags,
	};
	uint32_t id = 0;
	int err = p->error ? p->error : mappings_add(&p->mappings, &row, &id);

	return added(p, err, id);
}

uint32_t profile_add_function(struct profile *p, const struct profile_function *function)
{
	struct functions_row row = {
	    .name = intern(p, function->name),
	    .system_name = intern(p, function->system_name),
	    .filename = intern(p, function->filename),
	    .start_line = function->start_line,
	};
	uint32_t id = 0;
	int err = p->error ? p->error : functions_add(&p->functions, &row, &id);

	return added(p, err, id);
}

static bool refers_to_known(const struct profile *p, const struct profile_location *location)
{
	size_t i;

	if (location->mapping > p->mappings.count)
		return false;
	for (i = 0; i < location->line_count; i++)
		if (!location->lines[i].function || location->lines[i].function > p->functions.count)
			return false;
	return true;
}

uint32_t profile_add_location(struct profile *p, const struct profile_location *location)
{
	uint32_t id = 0;
	int err = refers_to_known(p, location) ? locations_add(&p->locations, location, &id) : -EINVAL;

	return added(p, err, id);
}

int profile_name_location(
    struct profile *p, uint32_t location, const struct profile_line *lines, size_t count)
{
	const struct profile_location named = {.lines = lines, .line_count = count};
	int err = location >= 1 && location <= p->locations.count && refers_to_known(p, &named)
	    ? locations_name(&p->locations, location, lines, count)
	    : -EINVAL;

	if (err)
		fail(p, err);
	return err;
}

/* Interns the labels that readers would show into the scratch array. Returns their number, p->error on
 * failure. */
static size_t intern_labels(struct profile *p, const struct profile_label *labels, size_t label_count)
{
	size_t i, kept = 0;

	if (array_reserve(&p->scratch, &p->scratch_capacity, label_count, sizeof(*p->scratch))) {
		fail(p, -ENOMEM);
		return 0;
	}
	for (i = 0; i < label_count; i++) {
		struct samples_label label = {.key = intern(p, labels[i].key)};

		if (labels[i].str) {
			label.str = intern(p, labels[i].str);
		} else {
			label.num = labels[i].num;
			label.unit = intern(p, labels[i].unit);
		}
		if (label.key && (label.str || label.num || label.unit))
			p->scratch[kept++] = label;
	}
	return kept;
}

int profile_add_sample(struct profile *p, const uint32_t *locations, size_t depth, const int64_t *values,
    const struct profile_label *labels, size_t label_count)
{
	size_t i;
	int err;

	if (p->error) /* then a location may be 0 that could not be added */
		return p->error;
	for (i = 0; i < depth; i++)
		if (!locations[i] || locations[i] > p->locations.count)
			return fail(p, -EINVAL);
	label_count = intern_labels(p, labels, label_count);
	if (p->error)
		return p->error;
	samples_sort_labels(p->scratch, label_count, &p->strings);
	err = samples_add(&p->samples, locations, depth, p->scratch, label_count, values);
	return err ? fail(p, err) : 0;
}

/* What the lines of one location give; 0 if it has none. */
static unsigned int location_flags(const struct profile *p, const struct locations_row *location)
{
	unsigned int flags = location->line_count ? PROFILE_HAS_FUNCTIONS : 0;
	size_t i;

	for (i = 0; i < location->line_count; i++) {
		const struct profile_line *line = &p->locations.lines[location->line + i];

		if (p->functions.rows[line->function - 1].filename)
			flags |= PROFILE_HAS_FILENAMES;
		if (line->line)
			flags |= PROFILE_HAS_LINE_NUMBERS;
	}
	if (location->line_count > 1)
		flags |= PROFILE_HAS_INLINE_FRAMES;
	return flags;
}

void profile_compute_mapping_flags(struct profile *p)
{
	enum { BARE = 1 << 16 }; /* some location has no function: readers must symbolize the whole mapping */
	size_t i, j;

	for (i = 0; i < p->mappings.count; i++)
		p->mappings.rows[i].flags = 0;
	for (i = 0; i < p->samples.row_count; i++) {
		const struct samples_row *row = &p->samples.rows[i];

		if (samples_is_zero(&p->samples, i))
			continue;
		for (j = 0; j < row->depth; j++) {
			const struct locations_row *location =
			    &p->locations.rows[p->samples.stacks[row->stack + j] - 1];
			unsigned int flags = location_flags(p, location);

			if (location->mapping)
				p->mappings.rows[location->mapping - 1].flags |= flags ? flags : BARE;
		}
	}
	for (i = 0; i < p->mappings.count; i++)
		if (p->mappings.rows[i].flags & BARE)
			p->mappings.rows[i].flags = 0;
}

/* ---- reading */

static const char *string(const struct profile *p, uint32_t number)
{
	return intern_at(&p->strings, number);
}

static struct profile_value_type value_type(const struct profile *p, struct value_type vt)
{
	return (struct profile_value_type){string(p, vt.type), string(p, vt.unit)};
}

size_t profile_sample_type_count(const struct profile *p)
{
	return p->sample_type_count;
}

struct profile_value_type profile_sample_type(const struct profile *p, size_t index)
{
	return value_type(p, p->sample_types[index]);
}

const char *profile_default_sample_type(const struct profile *p)
{
	return string(p, p->default_sample_type);
}

struct profile_value_type profile_period_type(const struct profile *p)
{
	return value_type(p, p->period_type);
}

int64_t profile_period(const struct profile *p)
{
	return p->period;
}

int64_t profile_time_ns(const struct profile *p)
{
	return p->time_ns;
}

int64_t profile_duration_ns(const struct profile *p)
{
	return p->duration_ns;
}

size_t profile_comment_count(const struct profile *p)
{
	return p->comment_count;
}

const char *profile_comment(const struct profile *p, size_t index)
{
	return string(p, p->comments[index]);
}

const char *profile_drop_frames(const struct profile *p)
{
	return string(p, p->drop_frames);
}

const char *profile_keep_frames(const struct profile *p)
{
	return string(p, p->keep_frames);
}

const char *profile_doc_url(const struct profile *p)
{
	return string(p, p->doc_url);
}

uint32_t profile_mapping_count(const struct profile *p)
{
	return p->mappings.count;
}

struct profile_mapping profile_mapping(const struct profile *p, uint32_t id)
{
	const struct mappings_row *m = &p->mappings.rows[id - 1];

	return (struct profile_mapping){
	    m->start, m->limit, m->file_offset, string(p, m->filename), string(p, m->build_id), m->flags};
}

uint32_t profile_function_count(const struct profile *p)
{
	return p->functions.count;
}

struct profile_function profile_function(const struct profile *p, uint32_t id)
{
	const struct functions_row *f = &p->functions.rows[id - 1];

	return (struct profile_function){
	    string(p, f->name), string(p, f->system_name), string(p, f->filename), f->start_line};
}

uint32_t profile_location_count(const struct profile *p)
{
	return p->locations.count;
}

struct profile_location profile_location(const struct profile *p, uint32_t id)
{
	const struct locations_row *l = &p->locations.rows[id - 1];

	return (struct profile_location){
	    l->mapping, l->address, p->locations.lines + l->line, l->line_count, l->folded};
}

size_t profile_sample_count(const struct profile *p)
{
	return p->samples.row_count;
}

struct profile_sample profile_sample(const struct profile *p, size_t index)
{
	const struct samples_row *row = &p->samples.rows[index];

	return (struct profile_sample){p->samples.stacks + row->stack, row->depth,
	    p->samples.values + index * p->samples.type_count, row->label_count};
}

struct profile_label profile_sample_label(const struct profile *p, size_t sample, size_t label)
{
	const struct samples_label *l = &p->samples.labels[p->samples.rows[sample].label + label];

	return (struct profile_label){
	    string(p, l->key), l->str ? string(p, l->str) : NULL, l->num, string(p, l->unit)};
}

bool profile_sample_is_zero(const struct profile *p, size_t index)
{
	return samples_is_zero(&p->samples, index);
}

/* ---- copying */

void profile_copy_header(struct profile *to, const struct profile *from)
{
	struct profile_value_type period = profile_period_type(from);

	for (size_t i = 0; i < profile_sample_type_count(from); i++)
		profile_add_sample_type(
		    to, profile_sample_type(from, i).type, profile_sample_type(from, i).unit);
	profile_set_default_sample_type(to, profile_default_sample_type(from));
	profile_set_period(to, period.type, period.unit, profile_period(from));
	profile_set_time(to, profile_time_ns(from), profile_duration_ns(from));
	for (size_t i = 0; i < profile_comment_count(from); i++)
		profile_add_comment(to, profile_comment(from, i));
	profile_set_drop_frames(to, profile_drop_frames(from));
	profile_set_keep_frames(to, profile_keep_frames(from));
}

void profile_copy_functions(struct profile *to, const struct profile *from)
{
	for (uint32_t id = 1; id <= profile_mapping_count(from); id++) {
		struct profile_mapping mapping = profile_mapping(from, id);

		profile_add_mapping(to, &mapping);
	}
	for (uint32_t id = 1; id <= profile_function_count(from); id++) {
		struct profile_function function = profile_function(from, id);

		profile_add_function(to, &function);
	}
}

void profile_copy_tables(struct profile *to, const struct profile *from)
{
	profile_copy_functions(to, from);
	for (uint32_t id = 1; id <= profile_location_count(from); id++) {
		struct profile_location location = profile_location(from, id);

		profile_add_location(to, &location);
	}
}
