/* SPDX-License-Identifier: Apache-2.0 */
/* Starts the programs that are installed beside heaptap: heaptap-push and heaptap-serve. */
#ifndef SAMPLER_CMD_RECORD_INSTALLED_PROGRAM_H
#define SAMPLER_CMD_RECORD_INSTALLED_PROGRAM_H

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>

/* The words of the program's command line. Owned; the array ends with NULL. */
struct installed_program_words {
	char **at;
	size_t count;
	bool failed; /* there was no memory */
};

__attribute__((format(printf, 2, 3))) void installed_program_add(
    struct installed_program_words *words, const char *format, ...);

/* Adds "--NAME=VALUE", unless value is NULL. */
void installed_program_add_text(struct installed_program_words *words, const char *name, const char *value);
void installed_program_words_free(struct installed_program_words *words);

/* Finds the path of a program. 0, or -errno after a line. */
int installed_program_find(const char *program, char path[PATH_MAX]);

/* Executes the program in place of this one. Returns, after a line, only if that fails. */
void installed_program_become(const char *path, const struct installed_program_words *words);

/* The same in a forked child, in a session of its own. Of the descriptors only stderr and `kept` stay open
 * (negative numbers are passed over). */
_Noreturn void installed_program_become_beside(
    const char *path, const struct installed_program_words *words, const int *kept, size_t count);

#endif
