/* SPDX-License-Identifier: Apache-2.0 */
#include "pprof/check/checker.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "pprof/table/array.h"

/* The severity of the rule at this level; false if the level ignores it. */
static bool severity_of(enum check_level level, enum checker_rule rule, enum check_severity *severity)
{
	*severity = CHECK_ERROR;
	switch (rule) {
	case RULE_PPROF:
		return true;
	case RULE_READERS:
		if (level == CHECK_FOREIGN)
			*severity = CHECK_WARNING;
		return true;
	case RULE_OURS:
		return level != CHECK_FOREIGN;
	case RULE_ADVICE:
		*severity = CHECK_WARNING;
		return level != CHECK_FOREIGN;
	default:
		return level == CHECK_HEAP;
	}
}

/* Counts a finding and keeps it if there is room. 0 or -ENOMEM. */
__attribute__((format(printf, 3, 0))) static int add_finding(
    struct check_report *r, enum check_severity severity, const char *format, va_list args)
{
	struct check_finding *finding;

	if (severity == CHECK_ERROR)
		r->error_count++;
	else
		r->warning_count++;
	/* Warnings get half the room, so that many of them do not hide an error. */
	if (r->finding_count >= (severity == CHECK_ERROR ? CHECK_FINDINGS_MAX : CHECK_FINDINGS_MAX / 2))
		return 0;
	if (array_reserve(&r->findings, &r->capacity, r->finding_count + 1, sizeof(*r->findings)))
		return -ENOMEM;
	finding = &r->findings[r->finding_count++];
	finding->severity = severity;
	vsnprintf(finding->message, sizeof(finding->message), format, args);
	return 0;
}

void checker_find(struct checker *c, enum checker_rule rule, const char *format, ...)
{
	enum check_severity severity;
	va_list args;
	int err;

	if (!severity_of(c->level, rule, &severity))
		return;
	va_start(args, format);
	err = add_finding(c->report, severity, format, args);
	va_end(args);
	c->error = c->error ? c->error : err;
}

bool checker_string(struct checker *c, uint64_t index, const char *what)
{
	if (index >= c->string_count) {
		checker_find(c, RULE_PPROF, "%s: string index %llu is outside the string table (%zu entries)",
		    what, (unsigned long long)index, c->string_count);
		return false;
	}
	c->strings[index].used = true;
	return true;
}

bool checker_string_is(const struct checker *c, uint64_t index, const char *text)
{
	size_t len = strlen(text);

	return index < c->string_count && wire_left(&c->strings[index].bytes) == len &&
	    (!len || !memcmp(c->strings[index].bytes.at, text, len));
}

void checker_string_copy(const struct checker *c, uint64_t index, char *out, size_t size)
{
	size_t len = index < c->string_count ? wire_left(&c->strings[index].bytes) : 0;

	if (len > size - 1)
		len = size - 1;
	if (len)
		memcpy(out, c->strings[index].bytes.at, len);
	out[len] = '\0';
}

bool checker_numbers(struct checker *c, const struct wire_field *field, uint64_t *numbers, uint32_t count,
    const char *what, size_t number)
{
	struct wire_oddities odd = {0};
	int err = wire_numbers(field, numbers, count, &odd);

	if (err)
		checker_find(c, RULE_PPROF, "%s %zu: %s", what, number,
		    err == -EPROTO ? "a field has the wrong wire type" : "damaged bytes");
	if (odd.unknown)
		checker_find(c, RULE_READERS, "%s %zu: unknown field %u (pprof-format throws)", what, number,
		    odd.unknown);
	if (odd.repeated)
		checker_find(c, RULE_OURS, "%s %zu: field %u comes twice", what, number, odd.repeated);
	return !err;
}

/* Memory in use: the uncompressed file, the tables, and for each string 32 bytes while strings are
 * compared. */
static size_t bytes_of(const struct checker *c)
{
	return wire_left(&c->all) + c->string_capacity * sizeof(*c->strings) + 32 * c->string_count +
	    c->mapping_capacity * sizeof(*c->mappings) + c->function_capacity * sizeof(*c->functions) +
	    c->location_capacity * sizeof(*c->locations) + c->type_capacity * sizeof(*c->types) +
	    c->stack_capacity * sizeof(*c->stack) + c->label_capacity * sizeof(*c->labels) +
	    c->value_capacity * sizeof(*c->values) + idmap_bytes(&c->mapping_ids) +
	    idmap_bytes(&c->function_ids) + idmap_bytes(&c->location_ids) + samples_bytes(&c->distinct);
}

/* Damage at the top level has been reported once by check_top_level(). */
void checker_each(struct checker *c, uint32_t number, checker_entry *entry)
{
	struct wire w = c->all;
	struct wire_field field;

	while (!c->error && wire_next(&w, &field) > 0)
		if (!number || field.number == number) {
			entry(c, &field);
			if (!c->error && bytes_of(c) > c->max_bytes)
				c->error = -EFBIG;
		}
}

void checker_fini(struct checker *c)
{
	free(c->strings);
	free(c->mappings);
	free(c->functions);
	free(c->locations);
	free(c->types);
	free(c->stack);
	free(c->labels);
	free(c->values);
	idmap_fini(&c->mapping_ids);
	idmap_fini(&c->function_ids);
	idmap_fini(&c->location_ids);
	samples_fini(&c->distinct);
}
