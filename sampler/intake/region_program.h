/* SPDX-License-Identifier: Apache-2.0 */
/* Which program a program run is, as it says itself. Hostile: good for a name. */
#ifndef SAMPLER_INTAKE_REGION_PROGRAM_H
#define SAMPLER_INTAKE_REGION_PROGRAM_H

#include "sampler/intake/region.h"

/* Writes the path by which the program run was executed into `path`; empty if there is none. Of a script
 * it is the script's. */
void region_program_path(const struct region *region, char path[REGION_PATH_BYTES]);

/* The same for its arguments, separated by blanks, of a script the interpreter first. Empty unless the region
 * was made to ask for them. */
void region_program_command_line(const struct region *region, char line[REGION_COMMAND_LINE_BYTES]);

#endif
