/* SPDX-License-Identifier: Apache-2.0 */
/* The first line of a script, "#!INTERPRETER [ARGUMENT]", as execve(2) reads it. Pure. */
#ifndef SAMPLER_INJECT_SCRIPT_LINE_H
#define SAMPLER_INJECT_SCRIPT_LINE_H

#include <stdbool.h>
#include <stddef.h>

enum { SCRIPT_LINE_BYTES = 256 }; /* BINPRM_BUF_SIZE: the kernel looks at no more */

struct script_line {
	char interpreter[SCRIPT_LINE_BYTES];
	char argument[SCRIPT_LINE_BYTES]; /* all that follows, as one argument; "" if there is none */
};

/* Parses the beginning of a file. False if it does not begin with "#!" or names no interpreter. */
bool script_line_parse(const char *head, size_t head_bytes, struct script_line *line);

/*
 * If the line calls env(1), the program that env looks up: the first word that is neither an option nor
 * NAME=VALUE, as in "#!/usr/bin/env -S python3 -u". False if the interpreter is not env.
 */
bool script_line_env(const struct script_line *line, char program[SCRIPT_LINE_BYTES]);

#endif
