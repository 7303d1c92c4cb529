/* SPDX-License-Identifier: Apache-2.0 */
#include "pprof/check/check.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "pprof/check/checker.h"
#include "pprof/codec/gzip.h"
#include "pprof/model/sample_types.h"
#include "pprof/table/array.h"

/* Pyroscope's default limit. */
enum { ADVISED_BYTES = 4 << 20 };

/* ---- the header */

struct header {
	uint64_t numbers[PROFILE_FIELD_COUNT];
	uint32_t seen[PROFILE_FIELD_COUNT];
	struct wire_field period_type;
};

static bool is_repeated(uint32_t number)
{
	return (number >= PROFILE_SAMPLE_TYPE && number <= PROFILE_STRING_TABLE) || number == PROFILE_COMMENT;
}

static void check_top_level_field(struct checker *c, struct header *h, const struct wire_field *field)
{
	uint32_t n = field->number;
	bool message = n <= PROFILE_STRING_TABLE || n == PROFILE_PERIOD_TYPE;

	if (n == PROFILE_DOC_URL)
		checker_find(c, RULE_READERS, "doc_url is set (Perfetto refuses field 15)");
	if (n >= PROFILE_FIELD_COUNT) {
		checker_find(c, RULE_READERS, "unknown field %u (Perfetto refuses, pprof-format throws)", n);
		return;
	}
	if (n != PROFILE_COMMENT && field->type != (message ? WIRE_BYTES : WIRE_VARINT)) {
		checker_find(c, RULE_PPROF, "field %u has the wrong wire type", n);
		return;
	}
	if (h->seen[n]++ && !is_repeated(n)) {
		if (n == PROFILE_TIME_NANOS && h->numbers[n])
			checker_find(c, RULE_PPROF, "time_nanos comes twice: concatenated profiles");
		else
			checker_find(c, RULE_OURS, "field %u comes twice", n);
	}
	if (n == PROFILE_PERIOD_TYPE)
		h->period_type = *field;
	else if (!message)
		h->numbers[n] = field->value;
}

/* false if the bytes are no protobuf message. */
static bool check_top_level(struct checker *c, struct header *h)
{
	struct wire w = c->all;
	struct wire_field field;
	int status;

	while ((status = wire_next(&w, &field)) > 0)
		check_top_level_field(c, h, &field);
	if (status < 0)
		checker_find(c, RULE_PPROF, "damaged protobuf at byte %zu", (size_t)(w.at - c->all.at));
	return !status;
}

static void check_sample_type(struct checker *c, struct wire_field *field)
{
	uint64_t n[VALUE_TYPE_FIELD_COUNT];
	struct checker_type *type;
	size_t number = c->type_count + 1, i;
	char name[64];

	if (array_reserve(&c->types, &c->type_capacity, number, sizeof(*c->types))) {
		c->error = -ENOMEM;
		return;
	}
	checker_numbers(c, field, n, VALUE_TYPE_FIELD_COUNT, "sample type", number);
	type = &c->types[c->type_count++];
	*type = (struct checker_type){.type = n[VALUE_TYPE_TYPE], .unit = n[VALUE_TYPE_UNIT]};
	if (!checker_string(c, type->type, "sample type") ||
	    !checker_string(c, type->unit, "sample type's unit"))
		return;
	if (!type->type || !type->unit)
		checker_find(c, RULE_OURS, "sample type %zu: no name or no unit", number);
	checker_string_copy(c, type->type, name, sizeof(name));
	if (strchr(name, '-'))
		checker_find(
		    c, RULE_READERS, "sample type %zu: '-' in its name (Pyroscope and Parca reject)", number);
	/* Bounded, because comparing all pairs is quadratic; more than 4 types are a finding anyway. */
	for (i = 0; i + 1 < number && number <= 16; i++)
		if (c->types[i].type == type->type)
			checker_find(
			    c, RULE_OURS, "sample types %zu and %zu have the same name", i + 1, number);
}

static void check_comment(struct checker *c, struct wire_field *field)
{
	bool packed = field->type == WIRE_BYTES;
	char text[16];
	uint64_t index;
	int status;

	if (packed)
		checker_find(c, RULE_READERS, "comments are packed (Alloy loses them)");
	while ((status = wire_repeated(field, &index)) > 0) {
		if (!checker_string(c, index, "comment"))
			continue;
		if (!index)
			checker_find(c, RULE_OURS, "a comment is empty");
		checker_string_copy(c, index, text, sizeof(text));
		if (!strcmp(text, "executableInfo="))
			checker_find(c, RULE_OURS, "a comment is a Parca executableInfo");
	}
	if (status < 0)
		checker_find(c, RULE_PPROF, "comment: damaged number or wrong wire type");
}

/* RE2 has no lookaround; pprof silently ignores a bad regular expression. */
static void check_regex(struct checker *c, uint64_t index, const char *what)
{
	char regex[4096];

	if (!checker_string(c, index, what))
		return;
	checker_string_copy(c, index, regex, sizeof(regex));
	if (strstr(regex, "(?=") || strstr(regex, "(?!") || strstr(regex, "(?<"))
		checker_find(c, RULE_OURS, "%s: lookaround is not RE2", what);
}

static bool is_a_type(const struct checker *c, uint64_t index)
{
	size_t i;

	for (i = 0; i < c->type_count; i++)
		if (c->types[i].type == index)
			return true;
	return false;
}

static void check_period_type(struct checker *c, const struct header *h)
{
	uint64_t n[VALUE_TYPE_FIELD_COUNT] = {0};

	if (!h->seen[PROFILE_PERIOD_TYPE])
		checker_find(c, RULE_READERS, "no period_type (Pyroscope dereferences it)");
	else
		checker_numbers(c, &h->period_type, n, VALUE_TYPE_FIELD_COUNT, "period_type", 1);
	checker_string(c, n[VALUE_TYPE_TYPE], "period_type");
	checker_string(c, n[VALUE_TYPE_UNIT], "period_type's unit");
	if (!checker_string_is(c, n[VALUE_TYPE_TYPE], "space") ||
	    !checker_string_is(c, n[VALUE_TYPE_UNIT], "bytes"))
		checker_find(c, RULE_HEAP,
		    "period_type is not space/bytes (no merge or base with other heap profiles)");
	if ((int64_t)h->numbers[PROFILE_PERIOD] < 0)
		checker_find(c, RULE_OURS, "period is negative");
	if ((int64_t)h->numbers[PROFILE_PERIOD] < 1)
		checker_find(c, RULE_HEAP, "period is not at least 1");
}

static void check_heap_types(struct checker *c)
{
	for (size_t i = 0; i < SAMPLE_TYPE_COUNT; i++) {
		const struct sample_type_row *row = &sample_types[i];

		if (i >= c->type_count || !checker_string_is(c, c->types[i].type, row->name) ||
		    !checker_string_is(c, c->types[i].unit, row->unit)) {
			checker_find(
			    c, RULE_HEAP, "sample type %zu is not %s/%s", i + 1, row->name, row->unit);
			return;
		}
	}
}

static void check_header(struct checker *c, const struct header *h)
{
	uint64_t default_type = h->numbers[PROFILE_DEFAULT_SAMPLE_TYPE];

	if (!c->type_count)
		checker_find(c, h->seen[PROFILE_SAMPLE] ? RULE_PPROF : RULE_OURS, "no sample types");
	if (c->type_count > 4)
		checker_find(
		    c, RULE_READERS, "%zu sample types (Alloy's delta panics beyond 4)", c->type_count);
	check_heap_types(c);
	check_period_type(c, h);
	check_regex(c, h->numbers[PROFILE_DROP_FRAMES], "drop_frames");
	check_regex(c, h->numbers[PROFILE_KEEP_FRAMES], "keep_frames");
	checker_string(c, h->numbers[PROFILE_DOC_URL], "doc_url");
	if (checker_string(c, default_type, "default_sample_type") && !is_a_type(c, default_type))
		checker_find(c, RULE_OURS, "default_sample_type is none of the sample types");
	if (!checker_string_is(c, default_type, sample_types[SAMPLE_TYPE_INUSE_SPACE].name) &&
	    !checker_string_is(c, default_type, sample_types[SAMPLE_TYPE_ALLOC_SPACE].name))
		checker_find(c, RULE_HEAP, "default_sample_type is neither inuse_space nor alloc_space");
	if ((int64_t)h->numbers[PROFILE_TIME_NANOS] < 0 || (int64_t)h->numbers[PROFILE_DURATION_NANOS] < 0)
		checker_find(c, RULE_OURS, "time or duration is negative");
	if (!h->numbers[PROFILE_TIME_NANOS])
		checker_find(c, RULE_OURS, "no time_nanos");
	if (h->numbers[PROFILE_DURATION_NANOS])
		checker_find(
		    c, RULE_HEAP, "duration_nanos is set on a snapshot (Parca takes it for a delta)");
	if (!h->seen[PROFILE_COMMENT])
		checker_find(c, RULE_ADVICE, "no comment");
	if (!h->seen[PROFILE_MAPPING])
		checker_find(c, RULE_HEAP, "no mapping: readers take the program's name from the first");
}

/* ---- the whole */

static void check_plain(struct checker *c)
{
	struct header header = {0};

	if (!wire_left(&c->all)) {
		checker_find(c, RULE_PPROF, "the profile is empty");
		return;
	}
	if (wire_left(&c->all) > ADVISED_BYTES)
		checker_find(c, RULE_ADVICE, "%zu bytes uncompressed (Pyroscope's limit is 4 MiB)",
		    wire_left(&c->all));
	if (!check_top_level(c, &header))
		return;
	check_tables_strings(c);
	checker_each(c, PROFILE_SAMPLE_TYPE, check_sample_type);
	checker_each(c, PROFILE_COMMENT, check_comment);
	check_header(c, &header);
	check_tables(c);
	check_samples(c);
	check_tables_use(c);
}

static void check_file(struct checker *c, const uint8_t *data, size_t len)
{
	struct gzip_info info;
	uint8_t *plain;
	size_t plain_len;
	int err;

	if (!gzip_detect(data, len)) {
		checker_find(c, RULE_OURS, "not compressed with gzip");
		c->all = (struct wire){data, data + len};
		check_plain(c);
		return;
	}
	err = gzip_decode(data, len, c->max_bytes, &plain, &plain_len, &info);
	if (err) {
		if (err == -ENOMEM || err == -EFBIG)
			c->error = err;
		else
			checker_find(c, RULE_PPROF, "gzip: %s", err == -ENODATA ? "cut short" : "damaged");
		return;
	}
	if (info.trailing_bytes)
		checker_find(c, RULE_PPROF, "gzip: %zu bytes after its end", info.trailing_bytes);
	if (info.member_count > 1)
		checker_find(
		    c, RULE_READERS, "gzip: %zu members (speedscope reads only one)", info.member_count);
	c->all = (struct wire){plain, plain + plain_len};
	check_plain(c);
	free(plain);
}

int check_profile(
    const void *data, size_t len, enum check_level level, size_t max_bytes, struct check_report *report)
{
	struct checker c = {.level = level, .max_bytes = max_bytes, .report = report};

	memset(report, 0, sizeof(*report));
	check_file(&c, data, len);
	checker_fini(&c);
	return c.error;
}

void check_report_fini(struct check_report *report)
{
	free(report->findings);
	memset(report, 0, sizeof(*report));
}
