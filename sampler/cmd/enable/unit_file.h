/* SPDX-License-Identifier: Apache-2.0 */
/* The text of a unit file of systemd, see systemd.syntax(7). Pure. */
#ifndef SAMPLER_CMD_ENABLE_UNIT_FILE_H
#define SAMPLER_CMD_ENABLE_UNIT_FILE_H

#include <stddef.h>

struct unit_file_entry {
	const char *section, *key; /* "Service", "Environment" */
	const char *value;         /* continuation lines joined, blanks at both ends removed; may be "" */
	unsigned int line;         /* where it begins, from 1 */
};

/* Calls `visit` for each assignment, in order. What cannot be parsed is passed over, as systemd does. 0 or
 * -ENOMEM. */
int unit_file_parse(
    const char *text, void (*visit)(void *context, const struct unit_file_entry *entry), void *context);

/*
 * The next word of a value as Environment= has them: separated by blanks, with quotes and backslash escapes
 * undone; what % begins stays. *at moves on. Returns 1; 0 at the end; -EINVAL: a quote is not closed, an
 * escape is unknown, or it is longer than the buffer.
 */
int unit_file_word(const char **at, char *word, size_t word_bytes);

/* The reverse: a word in double quotes that unit_file_word() reads again. 0 or -ENAMETOOLONG. */
int unit_file_quote(const char *word, char *text, size_t text_bytes);

#endif
