/* SPDX-License-Identifier: Apache-2.0 */
#include "pprof/analysis/merge.h"

#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "pprof/model/anonymous.h"
#include "pprof/model/origin.h"
#include "pprof/model/profile.h"
#include "pprof/table/array.h"

struct merge {
	struct profile *out;
	const struct profile *in;
	bool anonymize;
	uint32_t *mappings, *functions, *locations; /* ids in out, by id in the current profile */
	int64_t *shifts;                            /* of addresses, by mapping id in the current profile */
	int *types;                                 /* index in the current profile, by type of out */
	int64_t *values;
	uint32_t *stack;
	struct profile_label *labels;
	size_t stack_room, label_room;
	int64_t *parents; /* pids that some profile has inherited blocks from, ascending */
	size_t parent_count, parent_room;
	int64_t pid;        /* of the current profile, if it has blocks in common with others; 0 */
	uint64_t moved_end; /* end of the mappings placed from PROFILE_MOVED_START on */
};

enum {
	COMMENTS_COMPARED = 1000,
	COMPARED = 4096, /* mappings compared at most: only a hostile profile has more */
	PAGE = 4096,
};

static const char *shown(const struct merge *m, char kind, const char *name, char *buffer)
{
	return m->anonymize ? anonymous_name(kind, name, buffer) : name;
}

/* ---- types and header */

static int type_in(const struct profile *p, const char *name)
{
	size_t count = profile_sample_type_count(p);

	for (size_t i = 0; i < count && i < 256; i++)
		if (strcmp(profile_sample_type(p, i).type, name) == 0)
			return (int)i;
	return -1;
}

/* Those types of the first profile that all others have too. */
static int add_types(struct profile *out, struct profile *const *profiles, size_t count, size_t *culprit)
{
	size_t types = profile_sample_type_count(profiles[0]);

	for (size_t i = 0; i < types && i < 256; i++) {
		struct profile_value_type type = profile_sample_type(profiles[0], i);
		size_t having = 1;

		while (having < count && type_in(profiles[having], type.type) >= 0)
			having++;
		if (having < count)
			*culprit = having;
		else if (type_in(profiles[0], type.type) == (int)i)
			profile_add_sample_type(out, type.type, type.unit);
	}
	return profile_sample_type_count(out) ? 0 : -ENODATA;
}

static int add_header(
    struct profile *out, struct profile *const *profiles, size_t count, bool anonymize, size_t *culprit)
{
	struct profile_value_type period_type = profile_period_type(profiles[0]);
	int64_t period = 0, time_ns = 0, duration_ns = 0;

	for (size_t i = 0; i < count; i++) {
		struct profile_value_type other = profile_period_type(profiles[i]);
		int64_t when = profile_time_ns(profiles[i]);

		if (strcmp(other.type, period_type.type) != 0 || strcmp(other.unit, period_type.unit) != 0) {
			*culprit = i;
			return -ENODATA;
		}
		period = profile_period(profiles[i]) > period ? profile_period(profiles[i]) : period;
		time_ns = when && (!time_ns || when < time_ns) ? when : time_ns;
		if (__builtin_add_overflow(duration_ns, profile_duration_ns(profiles[i]), &duration_ns))
			duration_ns = INT64_MAX;
		for (size_t j = 0; j < profile_comment_count(profiles[i]) && !anonymize; j++) {
			const char *text = profile_comment(profiles[i], j);
			size_t old = 0, old_count = profile_comment_count(out);

			/* So many are looked through; beyond them, rather twice than not at all. */
			if (old_count > COMMENTS_COMPARED)
				old_count = COMMENTS_COMPARED;
			while (old < old_count && strcmp(profile_comment(out, old), text) != 0)
				old++;
			if (old == old_count)
				profile_add_comment(out, text);
		}
	}
	profile_set_period(out, period_type.type, period_type.unit, period);
	profile_set_time(out, time_ns, duration_ns);
	profile_set_default_sample_type(out, profile_default_sample_type(profiles[0]));
	profile_set_drop_frames(out, anonymize ? "" : profile_drop_frames(profiles[0]));
	profile_set_keep_frames(out, anonymize ? "" : profile_keep_frames(profiles[0]));
	return 0;
}

/* ---- tables */

/* Generated code: a different process has other code under the same name. */
static bool is_generated(const struct profile_mapping *mapping)
{
	return strncmp(mapping->filename, "[anon", 5) == 0;
}

/* The same part of the same file? */
static bool is_same(const struct profile_mapping *a, const struct profile_mapping *b, bool generated)
{
	if (a->limit - a->start != b->limit - b->start || a->file_offset != b->file_offset)
		return false;
	if (*a->build_id || *b->build_id)
		return strcmp(a->build_id, b->build_id) == 0;
	if (!*a->filename || strcmp(a->filename, b->filename) != 0)
		return false;
	return !generated || a->start == b->start;
}

/* The start address of a new mapping: its own, if no other mapping is there. */
static uint64_t place(struct merge *m, const struct profile_mapping *mapping)
{
	uint32_t known = profile_mapping_count(m->out);
	uint64_t start = mapping->start, bytes = mapping->limit - mapping->start;
	bool taken = false;

	for (uint32_t old = 1; old <= known && old <= COMPARED && !taken; old++) {
		struct profile_mapping other = profile_mapping(m->out, old);

		taken = other.start < mapping->limit && mapping->start < other.limit;
	}
	if (taken && bytes < PROFILE_MOVED_END && m->moved_end + bytes <= PROFILE_MOVED_END - 9 * PAGE)
		start = m->moved_end + mapping->start % PAGE;
	if (start + bytes > m->moved_end && start + bytes <= PROFILE_MOVED_END - 8 * PAGE)
		m->moved_end = (start + bytes + 2 * PAGE - 1) / PAGE * PAGE;
	return start;
}

static int add_mappings(struct merge *m)
{
	char filename[ANONYMOUS_BYTES];

	for (uint32_t id = 1; id <= profile_mapping_count(m->in); id++) {
		struct profile_mapping mapping = profile_mapping(m->in, id), shown_mapping = mapping;
		uint32_t known = profile_mapping_count(m->out), found = 0;

		shown_mapping.filename = shown(m, 'm', mapping.filename, filename);
		if (m->anonymize)
			shown_mapping.build_id = "";
		for (uint32_t old = 1; old <= known && old <= COMPARED && !found; old++) {
			struct profile_mapping other = profile_mapping(m->out, old);

			if (is_same(&other, &shown_mapping, is_generated(&mapping))) {
				found = old;
				m->shifts[id] = (int64_t)(other.start - mapping.start);
			}
		}
		if (!found && mapping.limit > mapping.start) {
			shown_mapping.start = place(m, &mapping);
			shown_mapping.limit = shown_mapping.start + (mapping.limit - mapping.start);
			m->shifts[id] = (int64_t)(shown_mapping.start - mapping.start);
		}
		m->mappings[id] = found ? found : profile_add_mapping(m->out, &shown_mapping);
		if (!m->mappings[id])
			return profile_error(m->out);
	}
	return 0;
}

static int add_functions(struct merge *m)
{
	char name[ANONYMOUS_BYTES], file[ANONYMOUS_BYTES];

	for (uint32_t id = 1; id <= profile_function_count(m->in); id++) {
		struct profile_function function = profile_function(m->in, id);

		if (m->anonymize) {
			function.name = shown(m, 'f', function.name, name);
			function.system_name = function.name;
			function.filename = shown(m, 's', function.filename, file);
		}
		m->functions[id] = profile_add_function(m->out, &function);
		if (!m->functions[id])
			return profile_error(m->out);
	}
	return 0;
}

static int add_locations(struct merge *m)
{
	for (uint32_t id = 1; id <= profile_location_count(m->in); id++) {
		struct profile_location location = profile_location(m->in, id);
		struct profile_line *lines = malloc((location.line_count + 1) * sizeof(*lines));

		if (!lines)
			return -ENOMEM;
		for (size_t i = 0; i < location.line_count; i++) {
			lines[i] = location.lines[i];
			lines[i].function = m->functions[lines[i].function];
		}
		location.lines = lines;
		location.address += (uint64_t)m->shifts[location.mapping];
		location.mapping = location.mapping ? m->mappings[location.mapping] : 0;
		m->locations[id] = profile_add_location(m->out, &location);
		free(lines);
		if (!m->locations[id])
			return profile_error(m->out);
	}
	return 0;
}

/* ---- samples */

static int add_sample(struct merge *m, size_t index)
{
	struct profile_sample sample = profile_sample(m->in, index);
	size_t label_count = 0;

	if (array_reserve(&m->stack, &m->stack_room, sample.depth + 1, sizeof(*m->stack)) ||
	    array_reserve(&m->labels, &m->label_room, sample.label_count + 2, sizeof(*m->labels)))
		return -ENOMEM;
	if (m->pid)
		m->labels[label_count++] =
		    (struct profile_label){.key = ORIGIN_LABEL_PID, .num = m->pid, .unit = ""};
	for (size_t i = 0; i < sample.depth; i++)
		m->stack[i] = m->locations[sample.locations[i]];
	for (size_t i = 0; i < sample.label_count; i++) {
		struct profile_label label = profile_sample_label(m->in, index, i);

		if (!m->anonymize || !label.str)
			m->labels[label_count++] = label;
	}
	for (size_t i = 0; i < profile_sample_type_count(m->out); i++)
		m->values[i] = sample.values[m->types[i]];
	return profile_add_sample(m->out, m->stack, sample.depth, m->values, m->labels, label_count);
}

static int add_profile(struct merge *m)
{
	size_t types = profile_sample_type_count(m->out);
	int err;

	m->mappings = calloc((size_t)profile_mapping_count(m->in) + 1, sizeof(*m->mappings));
	m->shifts = calloc((size_t)profile_mapping_count(m->in) + 1, sizeof(*m->shifts));
	m->functions = calloc((size_t)profile_function_count(m->in) + 1, sizeof(*m->functions));
	m->locations = calloc((size_t)profile_location_count(m->in) + 1, sizeof(*m->locations));
	m->types = calloc(types + 1, sizeof(*m->types));
	m->values = calloc(types + 1, sizeof(*m->values));
	err = m->mappings && m->shifts && m->functions && m->locations && m->types && m->values ? 0 : -ENOMEM;
	for (size_t i = 0; i < types && !err; i++)
		m->types[i] = type_in(m->in, profile_sample_type(m->out, i).type);
	if (!err)
		err = add_mappings(m);
	if (!err)
		err = add_functions(m);
	if (!err)
		err = add_locations(m);
	for (size_t i = 0; i < profile_sample_count(m->in) && !err; i++)
		err = add_sample(m, i);
	free(m->mappings);
	free(m->shifts);
	free(m->functions);
	free(m->locations);
	free(m->types);
	free(m->values);
	return err;
}

/* ---- blocks in several profiles */

static int64_t parent_of(const struct profile *p, size_t sample)
{
	for (size_t i = 0; i < profile_sample(p, sample).label_count; i++) {
		struct profile_label label = profile_sample_label(p, sample, i);

		if (!label.str && strcmp(label.key, ORIGIN_LABEL_FROM) == 0)
			return label.num;
	}
	return 0;
}

static int compare_pids(const void *left, const void *right)
{
	int64_t a = *(const int64_t *)left, b = *(const int64_t *)right;

	return a < b ? -1 : a > b;
}

static int add_parents(struct merge *m, const struct profile *p)
{
	int64_t last = 0;

	for (size_t i = 0; i < profile_sample_count(p); i++) {
		int64_t pid = parent_of(p, i);

		if (!pid || pid == last)
			continue;
		if (array_reserve(&m->parents, &m->parent_room, m->parent_count + 1, sizeof(*m->parents)))
			return -ENOMEM;
		m->parents[m->parent_count++] = last = pid;
	}
	return 0;
}

/* A parent and its children hold the same samples. Added up into one row, the error of the sum would not be
 * known any more (shared_samples.h), so their rows stay apart. */
static int64_t pid_to_keep(const struct merge *m, const struct profile *p)
{
	struct origin origin;
	int64_t pid;

	origin_read(&origin, p);
	pid = origin.pid;
	if (!m->parent_count || !origin_has_process(&origin))
		return 0;
	if (bsearch(&pid, m->parents, m->parent_count, sizeof(pid), compare_pids))
		return pid;
	for (size_t i = 0; i < profile_sample_count(p); i++)
		if (parent_of(p, i))
			return pid;
	return 0;
}

int merge_profiles(
    struct profile *const *profiles, size_t count, bool anonymize, struct profile **out, size_t *culprit)
{
	struct merge m = {.out = profile_new(), .anonymize = anonymize, .moved_end = PROFILE_MOVED_START};
	int err = m.out ? 0 : -ENOMEM;

	*culprit = 0;
	if (!err)
		err = add_types(m.out, profiles, count, culprit);
	if (!err)
		err = add_header(m.out, profiles, count, anonymize, culprit);
	for (size_t i = 0; i < count && !err && count > 1; i++)
		err = add_parents(&m, profiles[i]);
	if (m.parent_count)
		qsort(m.parents, m.parent_count, sizeof(*m.parents), compare_pids);
	for (size_t i = 0; i < count && !err; i++) {
		m.in = profiles[i];
		m.pid = pid_to_keep(&m, m.in);
		err = add_profile(&m);
	}
	free(m.parents);
	free(m.stack);
	free(m.labels);
	if (!err)
		err = profile_error(m.out);
	if (err) {
		profile_free(m.out);
		return err;
	}
	profile_compute_mapping_flags(m.out);
	*out = m.out;
	return 0;
}
