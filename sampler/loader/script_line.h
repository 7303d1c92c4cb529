/* SPDX-License-Identifier: Apache-2.0 */
/* The first line of a script, "#!INTERPRETER [ARGUMENT]", as execve(2) reads it. Pure. */
#ifndef SAMPLER_LOADER_SCRIPT_LINE_H
#define SAMPLER_LOADER_SCRIPT_LINE_H

#include <stdbool.h>
#include <stddef.h>

enum { SCRIPT_LINE_BYTES = 256 }; /* BINPRM_BUF_SIZE: what the kernel looks at */

struct script_line {
	char interpreter[SCRIPT_LINE_BYTES];
	char argument[SCRIPT_LINE_BYTES]; /* all that follows, as one; "" if there is none */
};

/* Parses the beginning of a file. False: it does not begin with "#!", or names nothing. */
bool script_line_parse(const char *head, size_t head_bytes, struct script_line *line);

/*
 * The program that env(1) looks up if the line calls it, as in "#!/usr/bin/env -S python3 -u": the first word
 * that is neither an option nor a NAME=VALUE. Returns false if the interpreter is not env.
 */
bool script_line_env(const struct script_line *line, char program[SCRIPT_LINE_BYTES]);

#endif
