/* SPDX-License-Identifier: Apache-2.0 */
#include "pprof/text/glob.h"

#include <stddef.h>
#include <string.h>

/* The end of the bracket that begins behind `set`; NULL if there is none. A ']' that comes first is a member.
 * */
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

/* Does the pattern's first element match the byte? *next: what follows it. No star. */
static bool one_matches(const char *pattern, char byte, const char **next)
{
	const char *end = *pattern == '[' ? set_end(pattern + 1) : NULL;

	if (end) {
		*next = end + 1;
		return set_has(pattern + 1, end, (unsigned char)byte);
	}
	if (*pattern == '?') {
		*next = pattern + 1;
		return true;
	}
	pattern += *pattern == '\\' && pattern[1];
	*next = pattern + 1;
	return *pattern == byte;
}

/* What is before the last star met matches as early as it can, so only that star ever takes more. */
bool glob_matches(const char *pattern, const char *text)
{
	const char *after_star = NULL, *retry = NULL, *next;

	while (*text) {
		if (*pattern == '*') {
			after_star = ++pattern;
			retry = text;
		} else if (*pattern && one_matches(pattern, *text, &next)) {
			pattern = next;
			text++;
		} else if (after_star) {
			pattern = after_star;
			text = ++retry;
		} else {
			return false;
		}
	}
	return !pattern[strspn(pattern, "*")];
}
