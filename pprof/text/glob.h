/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Globs as of a shell, but `*` and `?` match '/' and a leading dot, too: `*`, `?`, `[abc]`, `[a-z]`,
 * `[!a]`, and `\` takes the special meaning away. Bytes, whatever the locale. A bracket that is not closed
 * stands for itself.
 *
 * fnmatch(3) tries all ways to divide the text among the stars of a pattern, and the texts here come from
 * other users' processes: this takes at most pattern times text steps.
 */
#ifndef PPROF_TEXT_GLOB_H
#define PPROF_TEXT_GLOB_H

#include <stdbool.h>

/* Does the pattern match the whole text? Pure. */
bool glob_matches(const char *pattern, const char *text);

#endif
