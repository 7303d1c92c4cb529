/* SPDX-License-Identifier: Apache-2.0 */
#include "push/otlp_tables.h"

#include "pprof/model/profile.h"
#include "pprof/table/array.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

void otlp_tables_fini(struct otlp_tables *tables)
{
	for (size_t i = 0; i < tables->block_count; i++)
		free(tables->blocks[i]);
	free(tables->blocks);
	free(tables->attributes);
	intern_fini(&tables->strings);
	*tables = (struct otlp_tables){0};
}

void *otlp_tables_allocate(struct otlp_tables *tables, size_t count, size_t bytes)
{
	void *block = NULL;

	if (!array_reserve(
	        &tables->blocks, &tables->block_room, tables->block_count + 1, sizeof(*tables->blocks)))
		block = calloc(count + 1, bytes);
	if (!block) {
		tables->error = -ENOMEM;
		return NULL;
	}
	return tables->blocks[tables->block_count++] = block;
}

int32_t otlp_tables_string(struct otlp_tables *tables, const char *text)
{
	uint32_t number = 0;
	int err = *text ? intern_add(&tables->strings, text, strlen(text), &number) : 0;

	if (err || number > INT32_MAX)
		tables->error = err ? err : -EOVERFLOW;
	return (int32_t)number;
}

static Otlp__Attribute *attribute_new(struct otlp_tables *tables)
{
	Otlp__Attribute *attribute = otlp_tables_allocate(tables, 1, sizeof(*attribute));

	if (!attribute ||
	    array_reserve(&tables->attributes, &tables->attribute_room, tables->attribute_count + 1,
	        sizeof(*tables->attributes))) {
		tables->error = -ENOMEM;
		return NULL;
	}
	otlp__attribute__init(attribute);
	return tables->attributes[tables->attribute_count++] = attribute;
}

int32_t otlp_tables_attribute(
    struct otlp_tables *tables, const char *key, const char *text, int64_t number, const char *unit)
{
	Otlp__AnyValue *value = otlp_tables_allocate(tables, 1, sizeof(*value));
	Otlp__Attribute *attribute;

	if (!tables->attribute_count) /* place 0 */
		attribute_new(tables);
	attribute = attribute_new(tables);
	if (!value || !attribute)
		return 0;
	otlp__any_value__init(value);
	if (text) {
		value->value_case = OTLP__ANY_VALUE__VALUE_TEXT;
		value->text = (char *)text;
	} else {
		value->value_case = OTLP__ANY_VALUE__VALUE_NUMBER;
		value->number = number;
		attribute->unit = otlp_tables_string(tables, unit);
	}
	attribute->key = otlp_tables_string(tables, key);
	attribute->value = value;
	return (int32_t)tables->attribute_count - 1;
}

/* Rows 0 to count; row 0 stays zero. The structs are in one block, the pointers to them in another. */
#define ROWS(tables, count, rows, pointers, init)                                            \
	do {                                                                                 \
		(rows) = otlp_tables_allocate(tables, (count) + 1, sizeof(*(rows)));         \
		(pointers) = otlp_tables_allocate(tables, (count) + 1, sizeof(*(pointers))); \
		for (size_t row_ = 0; !(tables)->error && row_ <= (count); row_++) {         \
			init(&(rows)[row_]);                                                 \
			(pointers)[row_] = &(rows)[row_];                                    \
		}                                                                            \
	} while (0)

static void fill_mappings(struct otlp_tables *tables, const struct profile *profile)
{
	Otlp__Dictionary *d = &tables->dictionary;
	size_t count = profile_mapping_count(profile);
	Otlp__Mapping *rows;

	ROWS(tables, count, rows, d->mappings, otlp__mapping__init);
	for (uint32_t id = 1; id <= count && !tables->error; id++) {
		struct profile_mapping mapping = profile_mapping(profile, id);
		int32_t *build_id = otlp_tables_allocate(tables, 1, sizeof(*build_id));

		rows[id].start = mapping.start;
		rows[id].limit = mapping.limit;
		rows[id].file_offset = mapping.file_offset;
		rows[id].filename = otlp_tables_string(tables, mapping.filename);
		if (!build_id || !*mapping.build_id)
			continue;
		*build_id =
		    otlp_tables_attribute(tables, "process.executable.build_id.gnu", mapping.build_id, 0, "");
		rows[id].attributes = build_id;
		rows[id].n_attributes = 1;
	}
	d->n_mappings = count + 1;
}

static void fill_functions(struct otlp_tables *tables, const struct profile *profile)
{
	Otlp__Dictionary *d = &tables->dictionary;
	size_t count = profile_function_count(profile);
	Otlp__Function *rows;

	ROWS(tables, count, rows, d->functions, otlp__function__init);
	for (uint32_t id = 1; id <= count && !tables->error; id++) {
		struct profile_function function = profile_function(profile, id);

		rows[id].name = otlp_tables_string(tables, function.name);
		rows[id].system_name = otlp_tables_string(tables, function.system_name);
		rows[id].filename = otlp_tables_string(tables, function.filename);
		rows[id].start_line = function.start_line;
	}
	d->n_functions = count + 1;
}

static void fill_locations(struct otlp_tables *tables, const struct profile *profile)
{
	Otlp__Dictionary *d = &tables->dictionary;
	size_t count = profile_location_count(profile);
	Otlp__Location *rows;

	ROWS(tables, count, rows, d->locations, otlp__location__init);
	for (uint32_t id = 1; id <= count && !tables->error; id++) {
		struct profile_location location = profile_location(profile, id);
		Otlp__Line *lines = otlp_tables_allocate(tables, location.line_count, sizeof(*lines));

		rows[id].lines = otlp_tables_allocate(tables, location.line_count, sizeof(*rows[id].lines));
		rows[id].n_lines = location.line_count;
		rows[id].mapping = (int32_t)location.mapping;
		rows[id].address = location.address;
		for (size_t i = 0; i < location.line_count && !tables->error; i++) {
			otlp__line__init(&lines[i]);
			lines[i].function = (int32_t)location.lines[i].function;
			lines[i].line = location.lines[i].line;
			lines[i].column = location.lines[i].column;
			rows[id].lines[i] = &lines[i];
		}
	}
	d->n_locations = count + 1;
}

/* Stack i + 1 is sample i's. */
static void fill_stacks(struct otlp_tables *tables, const struct profile *profile)
{
	Otlp__Dictionary *d = &tables->dictionary;
	size_t count = profile_sample_count(profile);
	Otlp__Stack *rows;

	ROWS(tables, count, rows, d->stacks, otlp__stack__init);
	for (size_t i = 0; i < count && !tables->error; i++) {
		struct profile_sample sample = profile_sample(profile, i);

		rows[i + 1].n_locations = sample.depth;
		rows[i + 1].locations =
		    otlp_tables_allocate(tables, sample.depth, sizeof(*rows[i + 1].locations));
		for (size_t j = 0; j < sample.depth && !tables->error; j++)
			rows[i + 1].locations[j] = (int32_t)sample.locations[j];
	}
	d->n_stacks = count + 1;
}

int otlp_tables_fill(struct otlp_tables *tables, const struct profile *profile)
{
	Otlp__Link *link;

	otlp__dictionary__init(&tables->dictionary);
	ROWS(tables, (size_t)0, link, tables->dictionary.links, otlp__link__init);
	tables->dictionary.n_links = 1;
	if (profile_sample_count(profile) >= INT32_MAX || profile_location_count(profile) >= INT32_MAX)
		tables->error = -EOVERFLOW;
	if (!tables->error)
		fill_mappings(tables, profile);
	if (!tables->error)
		fill_functions(tables, profile);
	if (!tables->error)
		fill_locations(tables, profile);
	if (!tables->error)
		fill_stacks(tables, profile);
	return tables->error;
}

int otlp_tables_finish(struct otlp_tables *tables)
{
	Otlp__Dictionary *d = &tables->dictionary;

	if (!tables->attribute_count)
		attribute_new(tables);
	d->n_strings = (size_t)tables->strings.count + 1;
	d->strings = otlp_tables_allocate(tables, d->n_strings, sizeof(*d->strings));
	for (uint32_t i = 0; i < d->n_strings && !tables->error; i++)
		d->strings[i] = (char *)intern_at(&tables->strings, i);
	d->n_attributes = tables->attribute_count;
	d->attributes = tables->attributes;
	return tables->error;
}
