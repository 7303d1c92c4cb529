/* SPDX-License-Identifier: Apache-2.0 */
/* Has the main process of an enabled unit loaded the library? If not, why? */
#ifndef SAMPLER_CMD_DOCTOR_DOCTOR_UNIT_H
#define SAMPLER_CMD_DOCTOR_DOCTOR_UNIT_H

#include "sampler/cmd/enable/launcher.h"
#include "sampler/cmd/enable/root_folder.h"

#include <stdbool.h>

struct findings;

enum { DOCTOR_UNIT_FIX_BYTES = LAUNCHER_LINE_BYTES + LAUNCHER_FILE_BYTES + 512 };

/* What is known of a main process without the library. */
struct doctor_unit {
	const char *unit, *library;
	const struct launcher *launcher; /* what starts it; NULL if that is unknown */
	bool told;                       /* the launcher's file names the library */
	bool older;                      /* it was started before the drop-in was written */
};

/* Writes what the user has to do about that. Pure. */
void doctor_unit_fix(const struct doctor_unit *facts, char fix[DOCTOR_UNIT_FIX_BYTES]);

/* Prints a finding if the main process runs without the library. False if it printed nothing. */
bool doctor_unit_examine(
    struct findings *findings, const struct root_folder *root, const char *unit, const char *library);

#endif
