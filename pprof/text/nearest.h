/* SPDX-License-Identifier: Apache-2.0 */
/* "Did you mean": finds the names nearest to a word by edit distance. Pure. */
#ifndef PPROF_TEXT_NEAREST_H
#define PPROF_TEXT_NEAREST_H

#include <stddef.h>

enum { NEAREST_KEPT = 3, NEAREST_WORD_BYTES = 96, NEAREST_PREFIX = 3 };

struct nearest {
	char word[NEAREST_WORD_BYTES];
	struct {
		char name[NEAREST_WORD_BYTES];
		unsigned int distance;
	} kept[NEAREST_KEPT]; /* nearest first */
	size_t count;
};

void nearest_init(struct nearest *nearest, const char *word);

/* Keeps the name if it is near, and among the nearest so far. Case is ignored; of a name in two parts, "a:b",
 * the second part is also compared alone. A word of NEAREST_PREFIX characters or more is near to what begins
 * with it. */
void nearest_offer(struct nearest *nearest, const char *name);

/* "a, b, c"; "" if nothing is near. */
void nearest_list(const struct nearest *nearest, char *text, size_t text_bytes);

/* Insertions, deletions, replacements and swaps of neighbours from one word to the other (optimal string
 * alignment). */
unsigned int nearest_distance(const char *from, const char *to);

#endif
