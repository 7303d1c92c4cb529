/* SPDX-License-Identifier: Apache-2.0 */
/* What the doctor says of a program's file. */
#ifndef SAMPLER_DOCTOR_DOCTOR_PROGRAM_H
#define SAMPLER_DOCTOR_DOCTOR_PROGRAM_H

#include <stdbool.h>

struct findings;

/* name: what the user knows the file by; running: a process executes it, so it can be executed. Returns 0, or
 * -errno after a line that says why it cannot be examined. */
int doctor_program_examine(struct findings *findings, const char *path, const char *name, bool running);

#endif
