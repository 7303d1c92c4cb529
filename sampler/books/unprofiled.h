/* SPDX-License-Identifier: Apache-2.0 */
/* Programs that were not profiled, by reason: counted, and put into words. */
#ifndef SAMPLER_BOOKS_UNPROFILED_H
#define SAMPLER_BOOKS_UNPROFILED_H

#include "sampler/intake/region_pool.h"
#include "sampler/intake/target.h"

#include <stdbool.h>
#include <stdint.h>

/* All zero at first. Read by others. */
struct unprofiled {
	uint64_t incomplete;       /* runs that claimed a region and never got ready */
	uint64_t declined;         /* runs that could not use their region */
	const char *declined_text; /* why, of the last one; NULL if there is none */
	uint64_t executed;         /* processes that executed a program that has not reported to us */
	char executed_text[TARGET_UNPROFILED_BYTES]; /* target.unprofiled of the last one */
	uint64_t unchosen;                           /* programs left out by --only and --exclude */
	char unchosen_title[TARGET_TITLE_BYTES];     /* of the last one */

	bool command_seen;                 /* COMMAND has loaded the library */
	bool command_unchosen;             /* COMMAND's last program was left out */
	const char *command_declined_text; /* why COMMAND's run did not use its region; NULL if it did */
};

void unprofiled_note_incomplete(struct unprofiled *unprofiled);
void unprofiled_note_declined(struct unprofiled *unprofiled, const char *why);
void unprofiled_note_executed(struct unprofiled *unprofiled, const char *unseen);
void unprofiled_note_unchosen(struct unprofiled *unprofiled, const char *title);

void unprofiled_note_command(struct unprofiled *unprofiled, bool unchosen);
void unprofiled_note_command_declined(struct unprofiled *unprofiled, const char *why);

/* Describes all of these in one line, with what the pool knows; "" if there are none, or without a pool: a
 * daemon's list has a reason for each process. pool may be NULL. */
void unprofiled_describe(
    const struct unprofiled *unprofiled, const struct region_pool *pool, char *text, size_t bytes);

#endif
