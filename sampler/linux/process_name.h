/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The name of a process in tables, which tells processes of one program apart. It is the program with the
 * script, module or first operand that it was started with ("python3.11 gunicorn app:app", "java x.jar"), or
 * the title that the process gave itself ("nginx: worker process").
 *
 * No more of the command line is used: arguments may contain passwords and tokens. A word that looks like an
 * option, an assignment, an address or an account is never used as operand.
 */
#ifndef SAMPLER_LINUX_PROCESS_NAME_H
#define SAMPLER_LINUX_PROCESS_NAME_H

#include <stddef.h>
#include <sys/types.h>

enum { PROCESS_NAME_BYTES = 96, PROCESS_NAME_LINE_BYTES = 4096 };

/* program: the program's file name. line: /proc/PID/cmdline or its beginning, any bytes. The name is valid
 * UTF-8, without characters that a terminal would obey. Pure. */
void process_name_make(
    char name[PROCESS_NAME_BYTES], const char *program, const char *line, size_t line_bytes);

/* The same for a running process; the program alone if its command line cannot be read. */
void process_name_read(char name[PROCESS_NAME_BYTES], pid_t pid, const char *program);

#endif
