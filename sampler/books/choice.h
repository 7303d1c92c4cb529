/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which programs are to be recorded: the programs that match --only and do not match --exclude.
 *
 * An expression is looked for in the last part of the path by which a program was executed ("redis-server"),
 * and in its command line, whose first word is cut to its last part too ("python3 /srv/manage.py run"). There
 * the match must begin in the first word: "python" does not choose `sh -c 'python x.py'`.
 */
#ifndef SAMPLER_BOOKS_CHOICE_H
#define SAMPLER_BOOKS_CHOICE_H

#include <stdbool.h>
#include <stddef.h>

struct choice;

/* An expression may be NULL. Returns 0; -EINVAL with one line in error; or -ENOMEM. *out is NULL if both
 * are NULL: all programs are chosen. */
int choice_new(const char *only, const char *exclude, struct choice **out, char *error, size_t error_bytes);
void choice_free(struct choice *choice);

/* choice may be NULL. */
bool choice_takes(struct choice *choice, const char *path, const char *command_line);

#endif
