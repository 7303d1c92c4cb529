/* SPDX-License-Identifier: Apache-2.0 */
/* What the doctor finds: one line of an examination on standard output, and what can be done about it. */
#ifndef SAMPLER_DOCTOR_FINDING_H
#define SAMPLER_DOCTOR_FINDING_H

#include <stdbool.h>
#include <stdio.h>

enum finding_level { FINDING_GOOD, FINDING_NOTE, FINDING_BAD };

/* The findings of one examination. */
struct findings {
	FILE *out;
	bool bad; /* there was a FINDING_BAD */
};

/* Prints a line, and the line that fixes it unless `fix` is NULL. What could move a terminal's cursor is
 * shown as '?': names and paths may come from a process that means no good. */
void finding_say(struct findings *findings, enum finding_level level, const char *fix, const char *format,
    ...) __attribute__((format(printf, 4, 5)));

#endif
