/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Two passes. The first numbers what will be written: it walks the samples and gives each location, and
 * through it each function and string, the next number at its first use. The second packs the tables in the
 * order of the field numbers.
 *
 * Each entry is packed as a Profile of its own that holds nothing else. Protobuf defines the concatenation of
 * messages as their merge, so the pieces together are the one message, and no second copy of the profile as a
 * tree of generated structs is ever in memory.
 */
#include "pprof/encode.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "pprof/array.h"
#include "pprof/intern.h"
#include "pprof/profile.h"
#include "pprof/profile.pb-c.h"

typedef Perftools__Profiles__Profile pb_profile;
typedef Perftools__Profiles__ValueType pb_value_type;
typedef Perftools__Profiles__Sample pb_sample;
typedef Perftools__Profiles__Label pb_label;
typedef Perftools__Profiles__Mapping pb_mapping;
typedef Perftools__Profiles__Location pb_location;
typedef Perftools__Profiles__Line pb_line;
typedef Perftools__Profiles__Function pb_function;

struct buffer {
	ProtobufCBuffer base; /* protobuf-c hands this back to buffer_append() */
	uint8_t *bytes;
	size_t len, capacity;
	int error;
};

/* The numbering of one table: by the profile's id, and the ids in their new order. */
struct numbering {
	uint32_t *number; /* [id], 0 for what is not written */
	uint32_t *ids;    /* [number - 1] */
	uint32_t count;
};

struct encoder {
	const struct profile *p;
	struct buffer out;
	struct intern strings;
	int error; /* of interning */
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

static void buffer_append(ProtobufCBuffer *base, size_t len, const uint8_t *data)
{
	struct buffer *b = (struct buffer *)base;

	if (b->error || !len)
		return;
	b->error = array_reserve(&b->bytes, &b->capacity, b->len + len, 1);
	if (b->error)
		return;
	memcpy(b->bytes + b->len, data, len);
	b->len += len;
}

static void pack(struct encoder *e, const pb_profile *piece)
{
	protobuf_c_message_pack_to_buffer(&piece->base, &e->out.base);
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
	mapping_used[1] = 1; /* the main program's */
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
		pb_value_type *pointer = &type;
		pb_profile piece = PERFTOOLS__PROFILES__PROFILE__INIT;

		piece.n_sample_type = 1;
		piece.sample_type = &pointer;
		pack(e, &piece);
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
	pb_sample *pointer = &to;
	pb_profile piece = PERFTOOLS__PROFILES__PROFILE__INIT;
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
	piece.n_sample = 1;
	piece.sample = &pointer;
	pack(e, &piece);
	return 0;
}

static void pack_mapping(struct encoder *e, uint32_t number)
{
	struct profile_mapping from = profile_mapping(e->p, e->mappings.ids[number - 1]);
	pb_mapping to = PERFTOOLS__PROFILES__MAPPING__INIT;
	pb_mapping *pointer = &to;
	pb_profile piece = PERFTOOLS__PROFILES__PROFILE__INIT;

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
	piece.n_mapping = 1;
	piece.mapping = &pointer;
	pack(e, &piece);
}

static int pack_location(struct encoder *e, uint32_t number)
{
	struct profile_location from = profile_location(e->p, e->locations.ids[number - 1]);
	pb_location to = PERFTOOLS__PROFILES__LOCATION__INIT;
	pb_location *pointer = &to;
	pb_profile piece = PERFTOOLS__PROFILES__PROFILE__INIT;
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
	piece.n_location = 1;
	piece.location = &pointer;
	pack(e, &piece);
	return 0;
}

static void pack_function(struct encoder *e, uint32_t number)
{
	struct profile_function from = profile_function(e->p, e->functions.ids[number - 1]);
	pb_function to = PERFTOOLS__PROFILES__FUNCTION__INIT;
	pb_function *pointer = &to;
	pb_profile piece = PERFTOOLS__PROFILES__PROFILE__INIT;

	to.id = number;
	to.name = string(e, from.name);
	to.system_name = string(e, from.system_name);
	to.filename = string(e, from.filename);
	to.start_line = from.start_line;
	piece.n_function = 1;
	piece.function = &pointer;
	pack(e, &piece);
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

/* Every string has been used by now: string 0 and the rest, each as a piece. */
static void pack_strings(struct encoder *e)
{
	uint32_t number;

	for (number = 0; number <= e->strings.count; number++) {
		char *text = (char *)intern_at(&e->strings, number);
		pb_profile piece = PERFTOOLS__PROFILES__PROFILE__INIT;

		piece.n_string_table = 1;
		piece.string_table = &text;
		pack(e, &piece);
	}
}

/* The single fields. Their strings have to be in the table before it is packed, hence two steps around it. */
static int pack_strings_and_header(struct encoder *e)
{
	size_t i, comment_count = profile_comment_count(e->p);
	int64_t *comments = calloc(comment_count + 1, sizeof(*comments));
	pb_value_type period_type = value_type(e, profile_period_type(e->p));
	pb_profile piece = PERFTOOLS__PROFILES__PROFILE__INIT;

	if (!comments)
		return -ENOMEM;
	for (i = 0; i < comment_count; i++)
		comments[i] = string(e, profile_comment(e->p, i));
	piece.drop_frames = string(e, profile_drop_frames(e->p));
	piece.keep_frames = string(e, profile_keep_frames(e->p));
	piece.default_sample_type = string(e, profile_default_sample_type(e->p));
	piece.doc_url = string(e, profile_doc_url(e->p));
	pack_strings(e);
	piece.time_nanos = profile_time_ns(e->p);
	piece.duration_nanos = profile_duration_ns(e->p);
	/* Written even if empty: one reader takes its presence for granted. */
	piece.period_type = &period_type;
	piece.period = profile_period(e->p);
	piece.n_comment = comment_count;
	piece.comment = comments;
	pack(e, &piece);
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
	free(e->out.bytes);
}

int encode_profile(const struct profile *p, uint8_t **buf, size_t *len)
{
	struct encoder e = {.p = p, .out.base.append = buffer_append};
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
		err = e.error ? e.error : e.out.error;
	if (!err) {
		*buf = e.out.bytes;
		*len = e.out.len;
		e.out.bytes = NULL;
	}
	encoder_fini(&e);
	return err;
}
