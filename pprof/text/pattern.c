/* SPDX-License-Identifier: Apache-2.0 */
#include "pprof/text/pattern.h"

#include <errno.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>

enum {
	REGEX_MAX_BYTES = 64 * 1024,
	MATCH_STEPS = 100000, /* a hundred times what the longest C++ name needs */
	MATCH_HEAP_KIB = 4096,
	OVERRUNS_MAX = 100, /* names that exceed these bounds before the expression is given up */
};

/* Steps times bytes: a step may go through the whole rest of the text. Below 40 kB it makes no difference. */
#define MATCH_WORK UINT64_C(4000000000)

struct pattern {
	pcre2_code *code;
	pcre2_match_data *data;
	pcre2_match_context *context;
	unsigned int overruns;
};

static pcre2_code *compile(const char *regex, unsigned int flags, int *number, PCRE2_SIZE *offset)
{
	pcre2_compile_context *context = pcre2_compile_context_create(NULL);
	uint32_t options = PCRE2_UTF | PCRE2_NEVER_BACKSLASH_C | PCRE2_DOLLAR_ENDONLY | PCRE2_DOTALL;
	pcre2_code *code = NULL;

	*number = 0;
	*offset = 0;
	if (!context)
		return NULL;
	if (flags & PATTERN_WHOLE)
		options |= PCRE2_ANCHORED | PCRE2_ENDANCHORED;
	pcre2_set_max_pattern_length(context, REGEX_MAX_BYTES);
	code = pcre2_compile((PCRE2_SPTR)regex, PCRE2_ZERO_TERMINATED, options, number, offset, context);
	pcre2_compile_context_free(context);
	return code;
}

int pattern_new(const char *regex, unsigned int flags, struct pattern **out, char *error, size_t error_bytes)
{
	struct pattern *pattern = calloc(1, sizeof(*pattern));
	PCRE2_SIZE offset = 0;
	PCRE2_UCHAR text[128];
	int number;

	if (!pattern)
		return -ENOMEM;
	pattern->code = compile(regex, flags, &number, &offset);
	if (!pattern->code) {
		pattern_free(pattern);
		if (!number)
			return -ENOMEM;
		pcre2_get_error_message(number, text, sizeof(text));
		snprintf(error, error_bytes, "not a regular expression (%s, at character %zu)",
		    (const char *)text, (size_t)offset + 1);
		return -EINVAL;
	}
	pattern->data = pcre2_match_data_create(1, NULL);
	pattern->context = pcre2_match_context_create(NULL);
	if (!pattern->data || !pattern->context) {
		pattern_free(pattern);
		return -ENOMEM;
	}
	pcre2_set_heap_limit(pattern->context, MATCH_HEAP_KIB);
	*out = pattern;
	return 0;
}

void pattern_free(struct pattern *pattern)
{
	if (!pattern)
		return;
	pcre2_code_free(pattern->code);
	pcre2_match_data_free(pattern->data);
	pcre2_match_context_free(pattern->context);
	free(pattern);
}

bool pattern_matches(struct pattern *pattern, const char *text)
{
	const size_t length = strlen(text);
	const uint64_t steps = MATCH_WORK / (length + 1);
	int result;

	if (pattern->overruns >= OVERRUNS_MAX)
		return false;
	pcre2_set_match_limit(pattern->context, steps < MATCH_STEPS ? (uint32_t)steps : MATCH_STEPS);
	result = pcre2_match(pattern->code, (PCRE2_SPTR)text, length, 0, 0, pattern->data, pattern->context);
	pattern->overruns += result == PCRE2_ERROR_MATCHLIMIT || result == PCRE2_ERROR_DEPTHLIMIT ||
	    result == PCRE2_ERROR_HEAPLIMIT;
	return result >= 0;
}

/* ---- globs */

/* The end of the bracket that begins behind `set`; NULL if there is none. A first ']' is a member. */
static const char *set_end(const char *set)
{
	set += *set == '!' || *set == '^';
	return *set ? strchr(set + 1, ']') : NULL;
}

static bool set_has(const char *set, const char *end, unsigned char byte)
{
	bool inverted = *set == '!' || *set == '^', found = false;

	for (set += inverted; set < end; set++) {
		unsigned char low = (unsigned char)*set, high = low;

		if (set[1] == '-' && set + 2 < end) {
			high = (unsigned char)set[2];
			set += 2;
		}
		found = found || (byte >= low && byte <= high);
	}
	return found != inverted;
}

/* Does the glob's first element match the byte? *next: what follows it. No star. */
static bool one_matches(const char *glob, char byte, const char **next)
{
	const char *end = *glob == '[' ? set_end(glob + 1) : NULL;

	if (end) {
		*next = end + 1;
		return set_has(glob + 1, end, (unsigned char)byte);
	}
	if (*glob == '?') {
		*next = glob + 1;
		return true;
	}
	glob += *glob == '\\' && glob[1];
	*next = glob + 1;
	return *glob == byte;
}

/* What is before the last star met matches as early as it can, so only that star ever takes more. */
bool pattern_glob_matches(const char *glob, const char *text)
{
	const char *after_star = NULL, *retry = NULL, *next;

	while (*text) {
		if (*glob == '*') {
			after_star = ++glob;
			retry = text;
		} else if (*glob && one_matches(glob, *text, &next)) {
			glob = next;
			text++;
		} else if (after_star) {
			glob = after_star;
			text = ++retry;
		} else {
			return false;
		}
	}
	return !glob[strspn(glob, "*")];
}
