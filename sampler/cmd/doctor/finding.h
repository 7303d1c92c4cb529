/* SPDX-License-Identifier: Apache-2.0 */
/* A finding of the doctor: a line on standard output, and a line that says what to do. */
#ifndef SAMPLER_CMD_DOCTOR_FINDING_H
#define SAMPLER_CMD_DOCTOR_FINDING_H

#include <stdbool.h>
#include <stdio.h>

enum finding_level { FINDING_GOOD, FINDING_NOTE, FINDING_BAD };

/* The findings of one examination. */
struct findings {
	FILE *out;
	bool bad; /* a FINDING_BAD was printed */
};

/* Prints a line, and `fix` below it unless it is NULL. A character that could move a terminal's cursor
 * becomes '?': names and paths may come from a hostile process. */
void finding_say(struct findings *findings, enum finding_level level, const char *fix, const char *format,
    ...) __attribute__((format(printf, 4, 5)));

#endif
