/* SPDX-License-Identifier: Apache-2.0 */
/* The rules about samples. */
#include "pprof/check/checker.h"

#include <errno.h>
#include <string.h>

#include "pprof/model/origin.h"
#include "pprof/model/sample_types.h"
#include "pprof/table/array.h"

/* JavaScript viewers count in doubles. The others are Pyroscope's default limits. */
#define LARGEST_EXACT_TOTAL ((uint64_t)1 << 53)
enum { ADVISED_SAMPLES = 16000, ADVISED_DEPTH = 1000 };

struct sample {
	size_t depth, value_count, label_count;
	bool broken;    /* has a reference to nothing: cannot be compared */
	bool inherited; /* has the label "inherited": a block from before fork() */
};

static void read_stack(struct checker *c, struct wire_field *field, struct sample *s)
{
	uint64_t id;
	int status;

	while ((status = wire_repeated(field, &id)) > 0) {
		uint32_t location = idmap_find(&c->location_ids, id);

		if (array_reserve(&c->stack, &c->stack_capacity, s->depth + 1, sizeof(*c->stack))) {
			c->error = -ENOMEM;
			return;
		}
		c->stack[s->depth++] = location;
		if (!location) {
			checker_find(c, RULE_PPROF, "sample %zu has nil location (id %llu)", c->sample_count,
			    (unsigned long long)id);
			s->broken = true;
		} else {
			c->locations[location - 1].used = true;
		}
	}
	if (status < 0)
		checker_find(c, RULE_PPROF, "sample %zu: damaged locations", c->sample_count);
}

static void read_values(struct checker *c, struct wire_field *field, struct sample *s)
{
	uint64_t value;
	int status;

	while ((status = wire_repeated(field, &value)) > 0) {
		if (array_reserve(&c->values, &c->value_capacity, s->value_count + 1, sizeof(*c->values))) {
			c->error = -ENOMEM;
			return;
		}
		c->values[s->value_count++] = (int64_t)value;
	}
	if (status < 0)
		checker_find(c, RULE_PPROF, "sample %zu: damaged values", c->sample_count);
}

/* ---- labels */

/* A label becomes a Prometheus label in Pyroscope; a bad name fails the whole push. */
static bool is_label_name(const struct wire *bytes)
{
	const uint8_t *at;

	for (at = bytes->at; at < bytes->end; at++) {
		bool letter = (*at >= 'a' && *at <= 'z') || (*at >= 'A' && *at <= 'Z') || *at == '_';

		if (!letter && (at == bytes->at || *at < '0' || *at > '9'))
			return false;
	}
	return wire_left(bytes) > 0;
}

static void check_label_key(struct checker *c, const struct samples_label *label)
{
	struct checker_string *key = &c->strings[label->key];

	if (!is_label_name(&key->bytes))
		checker_find(c, RULE_READERS,
		    "sample %zu: label key does not match [a-zA-Z_][a-zA-Z0-9_]* (Pyroscope rejects)",
		    c->sample_count);
	if (label->str)
		key->string_label = true;
	else
		key->number_label = true;
}

static void check_label_value(struct checker *c, const struct samples_label *label)
{
	if (label->str && (label->num || label->unit))
		checker_find(
		    c, RULE_OURS, "sample %zu: a label has both a string and a number", c->sample_count);
	if (!label->str && !label->num && !label->unit)
		checker_find(
		    c, RULE_OURS, "sample %zu: a label without a value (pprof drops it)", c->sample_count);
	if (checker_string_is(c, label->key, "bytes") &&
	    (label->str || label->num < 0 || !checker_string_is(c, label->unit, "bytes")))
		checker_find(
		    c, RULE_OURS, "sample %zu: label bytes is not a number of bytes", c->sample_count);
}

static void read_label(struct checker *c, struct wire_field *field, struct sample *s)
{
	uint64_t n[LABEL_FIELD_COUNT];
	struct samples_label *label;

	if (array_reserve(&c->labels, &c->label_capacity, s->label_count + 1, sizeof(*c->labels))) {
		c->error = -ENOMEM;
		return;
	}
	if (!checker_numbers(c, field, n, LABEL_FIELD_COUNT, "label of sample", c->sample_count) ||
	    !checker_string(c, n[LABEL_KEY], "label's key") ||
	    !checker_string(c, n[LABEL_STR], "label's string") ||
	    !checker_string(c, n[LABEL_NUM_UNIT], "label's unit")) {
		s->broken = true;
		return;
	}
	label = &c->labels[s->label_count++];
	*label = (struct samples_label){
	    .key = (uint32_t)n[LABEL_KEY],
	    .str = (uint32_t)n[LABEL_STR],
	    .num = (int64_t)n[LABEL_NUM],
	    .unit = (uint32_t)n[LABEL_NUM_UNIT],
	};
	s->inherited |= checker_string_is(c, label->key, "inherited") ||
	    checker_string_is(c, label->key, ORIGIN_LABEL_FROM);
	check_label_key(c, label);
	check_label_value(c, label);
}

/* The labels are sorted: equal keys are neighbours. */
static void check_label_keys(struct checker *c, const struct sample *s)
{
	bool bytes = false;
	size_t i;

	for (i = 0; i < s->label_count; i++) {
		if (i && c->labels[i].key == c->labels[i - 1].key)
			checker_find(c, RULE_OURS, "sample %zu: two labels with one key", c->sample_count);
		bytes |= checker_string_is(c, c->labels[i].key, "bytes");
	}
	c->unlabelled_count += !bytes;
}

static void check_label_kinds(struct checker *c)
{
	size_t i;

	for (i = 0; i < c->string_count; i++)
		if (c->strings[i].string_label && c->strings[i].number_label)
			checker_find(c, RULE_OURS,
			    "string %zu is the key of string and of number labels (-tags adds both)", i);
}

/* ---- values */

/*
 * No more is in use than was allocated. Bytes are those of objects; an object may have no bytes. Blocks that
 * a process inherited through fork() were allocated by its parent; they have a label that says so.
 */
static void check_heap_values(struct checker *c, const struct sample *s)
{
	const int64_t *v = c->values;

	if (c->type_count != SAMPLE_TYPE_COUNT)
		return;
	const int64_t alloc_objects = v[SAMPLE_TYPE_ALLOC_OBJECTS], alloc_space = v[SAMPLE_TYPE_ALLOC_SPACE];
	const int64_t inuse_objects = v[SAMPLE_TYPE_INUSE_OBJECTS], inuse_space = v[SAMPLE_TYPE_INUSE_SPACE];
	if (!s->inherited && (inuse_objects > alloc_objects || inuse_space > alloc_space))
		checker_find(c, RULE_HEAP, "sample %zu: more in use than was allocated", c->sample_count);
	if ((alloc_space && !alloc_objects) || (inuse_space && !inuse_objects))
		checker_find(c, RULE_HEAP, "sample %zu: bytes without objects", c->sample_count);
}

static void check_values(struct checker *c, const struct sample *s)
{
	bool zero = true, negative = false;
	size_t i;

	if (s->value_count != c->type_count) {
		checker_find(c, RULE_PPROF, "sample %zu has %zu values for %zu types", c->sample_count,
		    s->value_count, c->type_count);
		return;
	}
	for (i = 0; i < s->value_count; i++) {
		int64_t v = c->values[i];
		uint64_t magnitude = v < 0 ? -(uint64_t)v : (uint64_t)v;

		zero = zero && !v;
		negative = negative || v < 0;
		if (__builtin_add_overflow(c->types[i].total, magnitude, &c->types[i].total))
			c->types[i].total = UINT64_MAX;
	}
	if (zero)
		checker_find(c, RULE_OURS, "sample %zu: all values are 0", c->sample_count);
	if (negative)
		checker_find(c, RULE_READERS,
		    "sample %zu: negative value (speedscope crashes, Pyroscope drops)", c->sample_count);
	check_heap_values(c, s);
}

/* ---- the sample */

static void check_distinct(struct checker *c, const struct sample *s)
{
	uint32_t before = c->distinct.row_count;
	int err;

	if (s->broken || c->level == CHECK_FOREIGN)
		return;
	samples_sort_labels(c->labels, s->label_count, NULL);
	err = samples_add(&c->distinct, c->stack, s->depth, c->labels, s->label_count, NULL);
	if (err)
		c->error = err;
	else if (c->distinct.row_count == before)
		checker_find(
		    c, RULE_OURS, "sample %zu: same stack and labels as an earlier one", c->sample_count);
	check_label_keys(c, s);
}

static void check_sample(struct checker *c, struct wire_field *message)
{
	struct sample s = {0};
	struct wire_field field;
	int status = 0;

	c->sample_count++;
	while (!c->error && (status = wire_next(&message->bytes, &field)) > 0) {
		if (field.number == SAMPLE_LOCATION_ID)
			read_stack(c, &field, &s);
		else if (field.number == SAMPLE_VALUE)
			read_values(c, &field, &s);
		else if (field.number == SAMPLE_LABEL)
			read_label(c, &field, &s);
		else
			checker_find(
			    c, RULE_READERS, "sample %zu: unknown field %u", c->sample_count, field.number);
	}
	if (c->error)
		return;
	if (status < 0) {
		checker_find(c, RULE_PPROF, "sample %zu: damaged bytes", c->sample_count);
		return;
	}
	if (!s.depth)
		checker_find(c, RULE_OURS, "sample %zu has no stack", c->sample_count);
	if (s.depth > ADVISED_DEPTH)
		checker_find(c, RULE_ADVICE, "sample %zu: %zu frames (Pyroscope cuts at 1000)",
		    c->sample_count, s.depth);
	check_values(c, &s);
	check_distinct(c, &s);
}

void check_samples(struct checker *c)
{
	size_t i;

	checker_each(c, PROFILE_SAMPLE, check_sample);
	check_label_kinds(c);
	if (c->unlabelled_count && c->level == CHECK_HEAP)
		checker_find(c, RULE_ADVICE, "%zu samples without a label bytes", c->unlabelled_count);
	if (c->sample_count > ADVISED_SAMPLES)
		checker_find(c, RULE_ADVICE, "%zu samples (Pyroscope's limit is 16000)", c->sample_count);
	for (i = 0; i < c->type_count; i++)
		if (c->types[i].total >= LARGEST_EXACT_TOTAL)
			checker_find(c, RULE_READERS,
			    "sample type %zu: total beyond 2^53 (not exact in JavaScript viewers)", i + 1);
}
