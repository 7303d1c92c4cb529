/* SPDX-License-Identifier: Apache-2.0 */
/* Which program runs when a file is executed: of a script its interpreter. */
#ifndef SAMPLER_DOCTOR_DOCTOR_SCRIPT_H
#define SAMPLER_DOCTOR_DOCTOR_SCRIPT_H

#include <stddef.h>

struct findings;

/*
 * Writes the path of the ELF file that runs for `path` into `program`: `path` itself, or its last
 * interpreter. Each interpreter is a finding. 0, or -errno after a line that says why there is no such file.
 */
int doctor_script_resolve(struct findings *findings, const char *path, char *program, size_t program_bytes);

#endif
