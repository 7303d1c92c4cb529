/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the user reads at the end of a session. One process gets a block of lines. Several get lines about
 * what went wrong, a table, and what the table leaves out. The last lines say how to go on.
 */
#ifndef SAMPLER_WRITE_SUMMARY_SCREEN_H
#define SAMPLER_WRITE_SUMMARY_SCREEN_H

#include "sampler/write/summary_list.h"

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

/* All of it is borrowed. */
struct summary_facts {
	const char *missed; /* lines about what could not be profiled, each with a newline; "" if none */
	uint64_t min_samples;
	uint64_t running; /* processes that are still recorded */
	int width;        /* of the terminal; 0: no limit */
};

/* Prints the lines. Prints nothing if the list is empty and nothing was missed. */
void summary_screen_print(FILE *out, const struct summary_list *list, const struct summary_facts *facts);

/* Of these lines the table alone. width: of the terminal; 0: no limit. The last column, the profile, is never
 * cut. */
void summary_screen_table(FILE *out, const struct summary_list *list, int width);

/* Points *folder at the folder that all profiles in the table are in, and returns its length, with the slash
 * at its end. Returns 0 if they have none, or different ones. */
size_t summary_screen_folder(const struct summary_list *list, const char **folder);

#endif
