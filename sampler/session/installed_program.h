/* SPDX-License-Identifier: Apache-2.0 */
/* Starting the programs that are installed beside heaptap: heaptap-push, heaptap-serve. */
#ifndef SAMPLER_SESSION_INSTALLED_PROGRAM_H
#define SAMPLER_SESSION_INSTALLED_PROGRAM_H

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>

/* The words of its command line: NULL-terminated, all owned. */
struct installed_program_words {
	char **at;
	size_t count;
	bool failed; /* no memory */
};

__attribute__((format(printf, 2, 3))) void installed_program_add(
    struct installed_program_words *words, const char *format, ...);

/* "--NAME=VALUE", unless value is NULL. */
void installed_program_add_text(struct installed_program_words *words, const char *name, const char *value);
void installed_program_words_free(struct installed_program_words *words);

/* Where it is: 0, or -errno after a line. */
int installed_program_find(const char *program, char path[PATH_MAX]);

/* Becomes it. Returns after a line if that fails. */
void installed_program_become(const char *path, const struct installed_program_words *words);

/* In a forked child: becomes it in a session of its own, with no descriptors but stderr and `kept` (negative
 * ones are passed over). */
_Noreturn void installed_program_become_beside(
    const char *path, const struct installed_program_words *words, const int *kept, size_t count);

#endif
