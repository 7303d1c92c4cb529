/* SPDX-License-Identifier: Apache-2.0 */
/* Whether a unit's drop-in alone reaches what the unit is there for, and what is missing if not. */
#ifndef SAMPLER_ENABLE_ENABLE_LAUNCHER_H
#define SAMPLER_ENABLE_ENABLE_LAUNCHER_H

#include "sampler/enable/launcher.h"
#include "sampler/enable/root_folder.h"

#include <stdbool.h>

/* What the unit's ExecStart= is. NULL: no launcher, or the unit cannot be read. */
const struct launcher *enable_launcher_find(
    const struct root_folder *root, const char *unit, const char *library);

/* Is the launcher told of the library, in the file that the unit's name leads to? */
bool enable_launcher_is_told(
    const struct root_folder *root, const struct launcher *launcher, const char *unit, const char *library);

/* Prints a line where ExecStart= of `unit`, which is `program`, is a launcher that is not told; and where it
 * does nothing, which units it is there for, and the same of each. */
void enable_launcher_say(
    const struct root_folder *root, const char *unit, const char *program, const char *library);

#endif
