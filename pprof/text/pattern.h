/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Regular expressions over names: from the user's options, or from a profile (drop_frames).
 *
 * pprof writes them in RE2's syntax. PCRE2 accepts that syntax with rare exceptions, and unlike regcomp(3) it
 * can be bounded: an expression from a hostile file cannot use up memory or time. A match that exceeds the
 * bound counts as no match; after a hundred of them the expression matches nothing, because a file has
 * millions of names.
 */
#ifndef PPROF_TEXT_PATTERN_H
#define PPROF_TEXT_PATTERN_H

#include <stdbool.h>
#include <stddef.h>

struct pattern;

enum pattern_flags {
	PATTERN_WHOLE = 1 << 0, /* must match the whole text, not a part of it */
};

/* On 0 the caller owns *out (pattern_free()). -EINVAL with one line in error, -ENOMEM. */
int pattern_new(const char *regex, unsigned int flags, struct pattern **out, char *error, size_t error_bytes);
void pattern_free(struct pattern *pattern);

bool pattern_matches(struct pattern *pattern, const char *text);

#endif
