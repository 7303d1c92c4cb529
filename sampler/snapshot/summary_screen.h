/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the user reads at the end of a session: of one process a block of lines, of several what went wrong, a
 * table, and what is not in it; then how to go on, once.
 */
#ifndef SAMPLER_SNAPSHOT_SUMMARY_SCREEN_H
#define SAMPLER_SNAPSHOT_SUMMARY_SCREEN_H

#include "sampler/snapshot/summary_list.h"

#include <stdint.h>
#include <stdio.h>

/* Borrowed. */
struct summary_facts {
	const char *missed; /* lines about what could not be profiled, each with a newline; "" none */
	uint64_t min_samples;
	uint64_t running; /* processes that are still recorded */
	int width;        /* of the terminal; 0: no limit */
};

/* Writes lines, each with its newline. Nothing if the list is empty and nothing was missed. */
void summary_screen_print(FILE *out, const struct summary_list *list, const struct summary_facts *facts);

#endif
