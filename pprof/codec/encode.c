/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Two passes. The first numbers what will be written: it walks the samples and gives each location, and
 * through it each function and string, the next number at its first use. The second packs the tables in the
 * order of the field numbers.
 *
 * protobuf-c packs each entry by itself, and the fields that are not repeated as a Profile without entries;
 * the key and the length in front of an entry are written here. Packing a Profile of one entry each time, or
 * protobuf-c's buffer interface (a call per field), took twice the time. There is never a second copy of the
 * profile in memory as a tree of generated structs.
 */
#include "pprof/codec/encode.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "pprof/codec/wire.h"
#include "pprof/model/profile.h"
#include "pprof/model/schema.h"
#include "pprof/profile.pb-c.h"
#include "pprof/table/array.h"
#include "pprof/table/intern.h"

typedef Perftools__Profiles__Profile pb_profile;
typedef Perftools__Profiles__ValueType pb_value_type;
typedef Perftools__Profiles__Sample pb_sample;
typedef Perftools__Profiles__Label pb_label;
typedef Perftools__Profiles__Mapping pb_mapping;
typedef Perftools__Profiles__Location pb_location;
typedef Perftools__Profiles__Line pb_line;
typedef Perftools__Profiles__Function pb_function;

enum { KEY_BYTES_MAX = 11 }; /* a field number below 16 and a length */

/* The new numbers of one table: by the profile's id, and the ids in their new order. */
struct numbering {
	uint32_t *number; /* [id]: new number, 0 if not written */
	uint32_t *ids;    /* [new number - 1]: id */
	uint32_t count;
};

struct encoder {
	const struct profile *p;
	uint8_t *bytes; /* the message so far */
	size_t len, capacity;
	struct intern strings;
	int error; /* of interning or allocating */
	struct numbering mappings, functions, locations;
	uint64_t *stack;
	size_t stack_capacity;
	pb_label *labels;
	pb_label **label_pointers;
	size_t label_capacity, label_pointer_capacity;
	pb_line *lines;
	pb_line **line_pointers;
	size_t line_capacity, line_pointer_capacity;
};

/* Makes room for `len` bytes at the end. NULL if there is no memory; e->error says so. */
static uint8_t *extend(struct encoder *e, size_t len)
{
	int err = array_reserve(&e->bytes, &e->capacity, e->len + len, 1);

	if (err)
		e->error = err;
	return err ? NULL : e->bytes + e->len;
}

/* Writes the key of the Profile's field and the length of its content; returns the room for the content, NULL
 * without memory. */
static uint8_t *start_entry(struct encoder *e, enum profile_field field, size_t len)
{
	uint8_t *at = extend(e, KEY_BYTES_MAX + len);
	size_t left = len;

	if (!at)
		return NULL;
	*at++ = (uint8_t)(field << 3 | WIRE_BYTES);
	for (; left > 0x7f; left >>= 7)
		*at++ = (uint8_t)(left | 0x80);
	*at++ = (uint8_t)left;
	e->len = (size_t)(at - e->bytes) + len;
	return at;
}

static void pack(struct encoder *e, enum profile_field field, const ProtobufCMessage *entry)
{
	uint8_t *at = start_entry(e, field, protobuf_c_message_get_packed_size(entry));

	if (at)
		protobuf_c_message_pack(entry, at);
}

static int64_t string(struct encoder *e, const char *text)
{
	uint32_t number;
	int err = intern_add(&e->strings, text, strlen(text), &number);

	if (err)
		e->error = err;
	return number;
}

/* ---- numbering */

static int numbering_init(struct numbering *n, uint32_t id_count)
{
	n->number = calloc((size_t)id_count + 1, sizeof(*n->number));
	n->ids = calloc((size_t)id_count + 1, sizeof(*n->ids));
	return n->number && n->ids ? 0 : -ENOMEM;
}

static void numbering_fini(struct numbering *n)
{
	free(n->number);
	free(n->ids);
}

static void numbering_add(struct numbering *n, uint32_t id)
{
	if (n->number[id])
		return;
	n->ids[n->count++] = id;
	n->number[id] = n->count;
}

static void number_location(struct encoder *e, uint8_t *mapping_used, uint32_t id)
{
	struct profile_location location;
	size_t i;

	if (e->locations.number[id])
		return;
	numbering_add(&e->locations, id);
	location = profile_location(e->p, id);
	mapping_used[location.mapping] = 1;
	for (i = 0; i < location.line_count; i++)
		numbering_add(&e->functions, location.lines[i].function);
}

static int number_everything(struct encoder *e)
{
	uint32_t id, mapping_count = profile_mapping_count(e->p);
	uint8_t *mapping_used;
	size_t i, j;

	if (numbering_init(&e->mappings, mapping_count) ||
	    numbering_init(&e->functions, profile_function_count(e->p)) ||
	    numbering_init(&e->locations, profile_location_count(e->p)))
		return -ENOMEM;
	mapping_used = calloc((size_t)mapping_count + 2, 1);
	if (!mapping_used)
		return -ENOMEM;
	mapping_used[1] = 1; /* the main program's is always written */
	for (i = 0; i < profile_sample_count(e->p); i++) {
		struct profile_sample sample = profile_sample(e->p, i);

		if (profile_sample_is_zero(e->p, i))
			continue;
		for (j = 0; j < sample.depth; j++)
			number_location(e, mapping_used, sample.locations[j]);
	}
	for (id = 1; id <= mapping_count; id++)
		if (mapping_used[id])
			numbering_add(&e->mappings, id);
	free(mapping_used);
	return 0;
}

/* ---- packing */

static pb_value_type value_type(struct encoder *e, struct profile_value_type from)
{
	pb_value_type to = PERFTOOLS__PROFILES__VALUE_TYPE__INIT;

	to.type = string(e, from.type);
	to.unit = string(e, from.unit);
	return to;
}

static void pack_sample_types(struct encoder *e)
{
	size_t i;

	for (i = 0; i < profile_sample_type_count(e->p); i++) {
		pb_value_type type = value_type(e, profile_sample_type(e->p, i));

		pack(e, PROFILE_SAMPLE_TYPE, &type.base);
	}
}

static int fill_labels(struct encoder *e, size_t index, size_t count)
{
	size_t i;

	if (array_reserve(&e->labels, &e->label_capacity, count, sizeof(*e->labels)) ||
	    array_reserve(&e->label_pointers, &e->label_pointer_capacity, count, sizeof(*e->label_pointers)))
		return -ENOMEM;
	for (i = 0; i < count; i++) {
		struct profile_label from = profile_sample_label(e->p, index, i);
		pb_label *to = &e->labels[i];

		perftools__profiles__label__init(to);
		to->key = string(e, from.key);
		to->str = from.str ? string(e, from.str) : 0;
		to->num = from.num;
		to->num_unit = string(e, from.unit);
		e->label_pointers[i] = to;
	}
	return 0;
}

static int pack_sample(struct encoder *e, size_t index)
{
	struct profile_sample from = profile_sample(e->p, index);
	pb_sample to = PERFTOOLS__PROFILES__SAMPLE__INIT;
	size_t i;

	if (array_reserve(&e->stack, &e->stack_capacity, from.depth, sizeof(*e->stack)) ||
	    fill_labels(e, index, from.label_count))
		return -ENOMEM;
	for (i = 0; i < from.depth; i++)
		e->stack[i] = e->locations.number[from.locations[i]];
	to.n_location_id = from.depth;
	to.location_id = e->stack;
	to.n_value = profile_sample_type_count(e->p);
	to.value = (int64_t *)from.values; /* only read; the generated field is not const */
	to.n_label = from.label_count;
	to.label = e->label_pointers;
	pack(e, PROFILE_SAMPLE, &to.base);
	return 0;
}

static void pack_mapping(struct encoder *e, uint32_t number)
{
	struct profile_mapping from = profile_mapping(e->p, e->mappings.ids[number - 1]);
	pb_mapping to = PERFTOOLS__PROFILES__MAPPING__INIT;

	to.id = number;
	to.memory_start = from.start;
	to.memory_limit = from.limit;
	to.file_offset = from.file_offset;
	to.filename = string(e, from.filename);
	to.build_id = string(e, from.build_id);
	to.has_functions = !!(from.flags & PROFILE_HAS_FUNCTIONS);
	to.has_filenames = !!(from.flags & PROFILE_HAS_FILENAMES);
	to.has_line_numbers = !!(from.flags & PROFILE_HAS_LINE_NUMBERS);
	to.has_inline_frames = !!(from.flags & PROFILE_HAS_INLINE_FRAMES);
	pack(e, PROFILE_MAPPING, &to.base);
}

static int pack_location(struct encoder *e, uint32_t number)
{
	struct profile_location from = profile_location(e->p, e->locations.ids[number - 1]);
	pb_location to = PERFTOOLS__PROFILES__LOCATION__INIT;
	size_t i;

	if (array_reserve(&e->lines, &e->line_capacity, from.line_count, sizeof(*e->lines)) ||
	    array_reserve(
	        &e->line_pointers, &e->line_pointer_capacity, from.line_count, sizeof(*e->line_pointers)))
		return -ENOMEM;
	for (i = 0; i < from.line_count; i++) {
		pb_line *line = &e->lines[i];

		perftools__profiles__line__init(line);
		line->function_id = e->functions.number[from.lines[i].function];
		line->line = from.lines[i].line;
		line->column = from.lines[i].column;
		e->line_pointers[i] = line;
	}
	to.id = number;
	to.mapping_id = e->mappings.number[from.mapping];
	to.address = from.address;
	to.n_line = from.line_count;
	to.line = e->line_pointers;
	to.is_folded = from.folded;
	pack(e, PROFILE_LOCATION, &to.base);
	return 0;
}

static void pack_function(struct encoder *e, uint32_t number)
{
	struct profile_function from = profile_function(e->p, e->functions.ids[number - 1]);
	pb_function to = PERFTOOLS__PROFILES__FUNCTION__INIT;

	to.id = number;
	to.name = string(e, from.name);
	to.system_name = string(e, from.system_name);
	to.filename = string(e, from.filename);
	to.start_line = from.start_line;
	pack(e, PROFILE_FUNCTION, &to.base);
}

static int pack_tables(struct encoder *e)
{
	uint32_t number;
	size_t i;

	for (i = 0; i < profile_sample_count(e->p); i++)
		if (!profile_sample_is_zero(e->p, i) && pack_sample(e, i))
			return -ENOMEM;
	for (number = 1; number <= e->mappings.count; number++)
		pack_mapping(e, number);
	for (number = 1; number <= e->locations.count; number++)
		if (pack_location(e, number))
			return -ENOMEM;
	for (number = 1; number <= e->functions.count; number++)
		pack_function(e, number);
	return 0;
}

/* Called when the last string has its number. String 0 is "". */
static void pack_strings(struct encoder *e)
{
	uint32_t number;

	for (number = 0; number <= e->strings.count; number++) {
		const char *text = intern_at(&e->strings, number);
		size_t len = strlen(text);
		uint8_t *at = start_entry(e, PROFILE_STRING_TABLE, len);

		if (at)
			memcpy(at, text, len);
	}
}

static void pack_header(struct encoder *e, const pb_profile *header)
{
	size_t len = protobuf_c_message_get_packed_size(&header->base);
	uint8_t *at = extend(e, len);

	if (!at)
		return;
	protobuf_c_message_pack(&header->base, at);
	e->len += len;
}

/* The fields that are not repeated. Their strings must be in the table before the table is packed. */
static int pack_strings_and_header(struct encoder *e)
{
	size_t i, comment_count = profile_comment_count(e->p);
	int64_t *comments = calloc(comment_count + 1, sizeof(*comments));
	pb_value_type period_type = value_type(e, profile_period_type(e->p));
	pb_profile header = PERFTOOLS__PROFILES__PROFILE__INIT;

	if (!comments)
		return -ENOMEM;
	for (i = 0; i < comment_count; i++)
		comments[i] = string(e, profile_comment(e->p, i));
	header.drop_frames = string(e, profile_drop_frames(e->p));
	header.keep_frames = string(e, profile_keep_frames(e->p));
	header.default_sample_type = string(e, profile_default_sample_type(e->p));
	header.doc_url = string(e, profile_doc_url(e->p));
	pack_strings(e);
	header.time_nanos = profile_time_ns(e->p);
	header.duration_nanos = profile_duration_ns(e->p);
	/* Written even if empty: Pyroscope dereferences it without a check. */
	header.period_type = &period_type;
	header.period = profile_period(e->p);
	header.n_comment = comment_count;
	header.comment = comments;
	pack_header(e, &header);
	free(comments);
	return 0;
}

static void encoder_fini(struct encoder *e)
{
	numbering_fini(&e->mappings);
	numbering_fini(&e->functions);
	numbering_fini(&e->locations);
	intern_fini(&e->strings);
	free(e->stack);
	free(e->labels);
	free(e->label_pointers);
	free(e->lines);
	free(e->line_pointers);
	free(e->bytes);
}

int encode_profile(const struct profile *p, uint8_t **buf, size_t *len)
{
	struct encoder e = {.p = p};
	int err = profile_error(p);

	if (err)
		return err;
	err = number_everything(&e);
	if (!err) {
		pack_sample_types(&e);
		err = pack_tables(&e);
	}
	if (!err)
		err = pack_strings_and_header(&e);
	if (!err)
		err = e.error;
	if (!err) {
		*buf = e.bytes;
		*len = e.len;
		e.bytes = NULL;
	}
	encoder_fini(&e);
	return err;
}
