/* SPDX-License-Identifier: Apache-2.0 */
/* Patterns over names: regular expressions, and globs. */
#ifndef PPROF_TEXT_PATTERN_H
#define PPROF_TEXT_PATTERN_H

#include <stdbool.h>
#include <stddef.h>

/*
 * Regular expressions over names: from the user's options, or from a profile (drop_frames).
 *
 * pprof writes them in RE2's syntax. PCRE2 accepts that syntax with rare exceptions, and unlike regcomp(3) it
 * can be bounded: no match of a hostile file's expression uses up memory or time. One that exceeds the bound
 * counts as no match; after a hundred of them the expression matches nothing, because a file has millions of
 * names. They may all stay just below the bound: who takes the expression from a file looks at the time too.
 */
struct pattern;

enum pattern_flags {
	PATTERN_WHOLE = 1 << 0, /* must match the whole text, not a part of it */
};

/* On 0 the caller owns *out (pattern_free()). -EINVAL with one line in error, -ENOMEM. */
int pattern_new(const char *regex, unsigned int flags, struct pattern **out, char *error, size_t error_bytes);
void pattern_free(struct pattern *pattern);

bool pattern_matches(struct pattern *pattern, const char *text);

/*
 * Globs as of a shell, but `*` and `?` match '/' and a leading dot, too: `*`, `?`, `[abc]`, `[a-z]`,
 * `[!a]`, and `\` takes the special meaning away. Bytes, whatever the locale. A bracket that is not closed
 * stands for itself.
 *
 * fnmatch(3) tries all ways to divide the text among the stars of a glob, and the texts here come from
 * other users' processes: this takes at most glob times text steps.
 *
 * Does the glob match the whole text? Pure.
 */
bool pattern_glob_matches(const char *glob, const char *text);

#endif
