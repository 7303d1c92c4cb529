/* SPDX-License-Identifier: Apache-2.0 */
#include "pprof/analysis/leaks.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "pprof/table/array.h"

static int add_pattern(struct suppressions *s, const char *pattern, size_t length)
{
	char *copy;

	if (array_reserve(&s->patterns, &s->capacity, s->count + 1, sizeof(*s->patterns)) ||
	    array_reserve(&s->hits, &s->hit_capacity, s->count + 1, sizeof(*s->hits)))
		return -ENOMEM;
	copy = strndup(pattern, length);
	if (!copy)
		return -ENOMEM;
	s->hits[s->count] = 0;
	s->patterns[s->count++] = copy;
	return 0;
}

static int add_line(struct suppressions *s, const char *line, size_t length)
{
	while (length && strchr(" \t\r", line[length - 1]))
		length--;
	while (length && (*line == ' ' || *line == '\t')) {
		line++;
		length--;
	}
	if (!length || *line == '#')
		return 0;
	if (length <= 5 || memcmp(line, "leak:", 5) != 0)
		return -EINVAL;
	return add_pattern(s, line + 5, length - 5);
}

int suppressions_add(struct suppressions *s, const char *text, size_t len, size_t *line)
{
	const char *end = text + len;
	int err = 0;

	for (*line = 1; text < end && !err; ++*line) {
		const char *stop = memchr(text, '\n', (size_t)(end - text));

		if (!stop)
			stop = end;
		err = memchr(text, '\0', (size_t)(stop - text)) ? -EINVAL
		                                                : add_line(s, text, (size_t)(stop - text));
		if (err)
			return err;
		text = stop + 1;
	}
	return err;
}

void suppressions_fini(struct suppressions *s)
{
	for (size_t i = 0; i < s->count; i++)
		free(s->patterns[i]);
	free(s->patterns);
	free(s->hits);
	memset(s, 0, sizeof(*s));
}

/* Finds each piece between stars at its first possible place, which is enough. At worst this takes the
 * product of both lengths. */
bool suppressions_pattern(const char *pattern, const char *text)
{
	size_t length = strlen(pattern);
	bool tied = *pattern == '^', tied_end = length && pattern[length - 1] == '$';
	const char *at = text;

	if (tied) {
		pattern++;
		length--;
	}
	if (tied_end && length)
		length--;
	for (;;) {
		const char *star = memchr(pattern, '*', length);
		size_t piece = star ? (size_t)(star - pattern) : length, left = strlen(at);
		const char *found = NULL;

		if (!star && tied_end) {
			found = left >= piece && (!tied || left == piece) ? at + left - piece : NULL;
			return found && memcmp(found, pattern, piece) == 0;
		}
		if (piece > left)
			return false;
		if (tied)
			found = memcmp(at, pattern, piece) == 0 ? at : NULL;
		else
			found = piece ? memmem(at, left, pattern, piece) : at;
		if (!found || !star)
			return found != NULL;
		at = found + piece;
		tied = false;
		pattern = star + 1;
		length -= piece + 1;
	}
}

/* Is this row's stack hidden? Counts the hit. */
static bool suppressions_match(struct suppressions *s, const struct traces *t, size_t row)
{
	const uint32_t *stack = traces_stack(t, row);

	for (size_t i = 0; i < s->count; i++) {
		for (uint32_t j = 0; j < t->rows[row].depth; j++) {
			const struct frames_row *frame = &t->frames.rows[stack[j]];

			if (suppressions_pattern(s->patterns[i], frame->name) ||
			    suppressions_pattern(s->patterns[i], frame->file) ||
			    suppressions_pattern(s->patterns[i], frame->module)) {
				s->hits[i]++;
				return true;
			}
		}
	}
	return false;
}

static int compare_leaks(const void *left, const void *right)
{
	const struct leak *a = left, *b = right;

	if (a->bytes != b->bytes)
		return a->bytes > b->bytes ? -1 : 1;
	return a->row < b->row ? -1 : a->row > b->row;
}

int leaks_find(struct leaks *leaks, const struct traces *t, size_t column, struct suppressions *suppressions)
{
	memset(leaks, 0, sizeof(*leaks));
	leaks->leaks = calloc((size_t)t->row_count + 1, sizeof(*leaks->leaks));
	if (!leaks->leaks)
		return -ENOMEM;
	for (size_t row = 0; row < t->row_count; row++) {
		struct leak leak = {(uint32_t)row, traces_value(t, row, column, MEASURE_INUSE),
		    traces_value(t, row, column, MEASURE_INUSE_OBJECTS)};

		if (leak.bytes <= 0)
			continue;
		if (suppressions && suppressions_match(suppressions, t, row)) {
			leaks->suppressed++;
			traces_sum(&leaks->suppressed_bytes, leak.bytes);
			continue;
		}
		traces_sum(&leaks->bytes, leak.bytes);
		traces_sum(&leaks->objects, leak.objects);
		leaks->variance += traces_doubt(t, row, column, MEASURE_INUSE).variance;
		leaks->leaks[leaks->count++] = leak;
	}
	if (leaks->count > 1)
		qsort(leaks->leaks, leaks->count, sizeof(*leaks->leaks), compare_leaks);
	return 0;
}

void leaks_fini(struct leaks *leaks)
{
	free(leaks->leaks);
	memset(leaks, 0, sizeof(*leaks));
}
