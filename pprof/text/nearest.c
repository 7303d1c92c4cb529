/* SPDX-License-Identifier: Apache-2.0 */
#include "pprof/text/nearest.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

static unsigned int least(unsigned int a, unsigned int b)
{
	return a < b ? a : b;
}

static int same(char a, char b)
{
	return tolower((unsigned char)a) == tolower((unsigned char)b);
}

unsigned int nearest_distance(const char *from, const char *to)
{
	size_t n = strnlen(from, NEAREST_WORD_BYTES - 1), m = strnlen(to, NEAREST_WORD_BYTES - 1);
	unsigned int rows[3][NEAREST_WORD_BYTES];

	for (size_t j = 0; j <= m; j++)
		rows[0][j] = (unsigned int)j;
	for (size_t i = 1; i <= n; i++) {
		unsigned int *row = rows[i % 3];
		const unsigned int *up = rows[(i + 2) % 3], *over = rows[(i + 1) % 3];

		row[0] = (unsigned int)i;
		for (size_t j = 1; j <= m; j++) {
			row[j] =
			    least(least(up[j], row[j - 1]) + 1, up[j - 1] + !same(from[i - 1], to[j - 1]));
			if (i > 1 && j > 1 && same(from[i - 1], to[j - 2]) && same(from[i - 2], to[j - 1]))
				row[j] = least(row[j], over[j - 2] + 1);
		}
	}
	return rows[n % 3][m];
}

void nearest_init(struct nearest *nearest, const char *word)
{
	memset(nearest, 0, sizeof(*nearest));
	snprintf(nearest->word, sizeof(nearest->word), "%s", word);
}

/* How many changes leave a word recognizable: two would make anything of a short one. */
static unsigned int limit_of(size_t length)
{
	if (length <= 3)
		return length > 1;
	return (unsigned int)(length / 3 > 2 ? length / 3 : 2);
}

void nearest_offer(struct nearest *nearest, const char *name)
{
	size_t length = strlen(nearest->word), at = nearest->count;
	const char *second = strrchr(name, ':');
	unsigned int distance = nearest_distance(nearest->word, name), limit = limit_of(length);

	if (second && !strchr(nearest->word, ':'))
		distance = least(distance, nearest_distance(nearest->word, second + 1));
	if (length >= NEAREST_PREFIX && strncasecmp(nearest->word, name, length) == 0)
		distance = least(distance, limit);
	if (distance > limit || strlen(name) >= NEAREST_WORD_BYTES)
		return;
	while (at > 0 && nearest->kept[at - 1].distance > distance)
		at--;
	if (at == NEAREST_KEPT)
		return;
	size_t moved = nearest->count - at - (nearest->count == NEAREST_KEPT);
	memmove(&nearest->kept[at + 1], &nearest->kept[at], moved * sizeof(nearest->kept[0]));
	snprintf(nearest->kept[at].name, sizeof(nearest->kept[at].name), "%s", name);
	nearest->kept[at].distance = distance;
	nearest->count += nearest->count < NEAREST_KEPT;
}

void nearest_list(const struct nearest *nearest, char *text, size_t text_bytes)
{
	size_t length = 0;

	text[0] = '\0';
	for (size_t i = 0; i < nearest->count && length < text_bytes; i++)
		length += (size_t)snprintf(
		    text + length, text_bytes - length, "%s%s", i ? ", " : "", nearest->kept[i].name);
}
