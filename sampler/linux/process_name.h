/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a process is called in tables, so that processes of one program are told apart: the program, with the
 * script, module or first operand that it was started with ("python3.11 gunicorn app:app", "java x.jar"), or
 * the title that it has given itself ("nginx: worker process").
 *
 * Of the command line no more is taken than that: passwords and tokens stand in arguments. What looks like
 * an option, an assignment, an address or an account is never an operand here.
 */
#ifndef SAMPLER_LINUX_PROCESS_NAME_H
#define SAMPLER_LINUX_PROCESS_NAME_H

#include <stddef.h>
#include <sys/types.h>

enum { PROCESS_NAME_BYTES = 96, PROCESS_NAME_LINE_BYTES = 4096 };

/* Pure. program: what it is called otherwise, without its folder. line: /proc/PID/cmdline or its beginning,
 * of any bytes. The name is valid UTF-8, without anything that would do something to a terminal. */
void process_name_make(
    char name[PROCESS_NAME_BYTES], const char *program, const char *line, size_t line_bytes);

/* The same of a process now; the program alone if that cannot be read. */
void process_name_read(char name[PROCESS_NAME_BYTES], pid_t pid, const char *program);

#endif
