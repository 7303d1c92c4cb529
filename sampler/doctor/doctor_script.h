/* SPDX-License-Identifier: Apache-2.0 */
/* Which program runs when a file is executed: a script's interpreter, not the script, allocates memory. */
#ifndef SAMPLER_DOCTOR_DOCTOR_SCRIPT_H
#define SAMPLER_DOCTOR_DOCTOR_SCRIPT_H

#include <stddef.h>

struct findings;

/*
 * Writes the path of the ELF file that runs for `path` (itself, or at the end of its interpreters, each of
 * which is a finding) into `program`. Returns 0, or -errno after a line that says why there is none.
 */
int doctor_script_resolve(struct findings *findings, const char *path, char *program, size_t program_bytes);

#endif
