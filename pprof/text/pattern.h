/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Regular expressions over names: from the user's options, or from a profile (drop_frames).
 *
 * pprof writes them in RE2's syntax. PCRE2 accepts that syntax with rare exceptions, and unlike regcomp(3) it
 * can be bounded: no match of a hostile file's expression uses up memory or time. One that exceeds the bound
 * counts as no match; after a hundred of them the expression matches nothing, because a file has millions of
 * names. They may all stay just below the bound: who takes the expression from a file looks at the time too.
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
