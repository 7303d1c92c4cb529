/* SPDX-License-Identifier: Apache-2.0 */
/* What the doctor says of a program's file. */
#ifndef SAMPLER_CMD_DOCTOR_DOCTOR_PROGRAM_H
#define SAMPLER_CMD_DOCTOR_DOCTOR_PROGRAM_H

#include "sampler/books/unseen.h"

#include <stdbool.h>

struct findings;

/* Says what is not seen of the program or process, and how to see it. */
void doctor_program_say_unseen(struct findings *findings, const char *name, const struct unseen *unseen);

/* name: the user's name for the file. running: a process executes it. Returns 0, or -errno after a line that
 * says why the file cannot be examined. */
int doctor_program_examine(struct findings *findings, const char *path, const char *name, bool running);

#endif
