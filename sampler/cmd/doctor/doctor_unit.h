/* SPDX-License-Identifier: Apache-2.0 */
/* Which units load the library, and whether their main processes have loaded it. If not, why? */
#ifndef SAMPLER_CMD_DOCTOR_DOCTOR_UNIT_H
#define SAMPLER_CMD_DOCTOR_DOCTOR_UNIT_H

#include "sampler/cmd/enable/launcher.h"

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

/* Looks at /etc/ld.so.preload, and at the units with our drop-in. Says nothing if nothing is enabled. */
void doctor_unit_examine(struct findings *findings);

#endif
