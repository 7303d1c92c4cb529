/* SPDX-License-Identifier: Apache-2.0 */
#include "sampler/books/missed.h"

#include "pprof/text/utf8.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

void missed_note_incomplete(struct missed *missed)
{
	missed->incomplete++;
}

void missed_note_declined(struct missed *missed, const char *why)
{
	missed->declined++;
	missed->declined_text = why;
}

void missed_note_executed(struct missed *missed, const char *unseen)
{
	missed->executed++;
	snprintf(missed->executed_text, sizeof(missed->executed_text), "%s", unseen);
}

void missed_note_unchosen(struct missed *missed, const char *title)
{
	missed->unchosen++;
	snprintf(missed->unchosen_title, sizeof(missed->unchosen_title), "%s", title);
	utf8_disarm(missed->unchosen_title, strlen(missed->unchosen_title));
}

void missed_note_command(struct missed *missed, bool unchosen)
{
	missed->command_seen = true;
	missed->command_unchosen = unchosen;
}

void missed_note_command_declined(struct missed *missed, const char *why)
{
	missed->command_declined_text = why;
}

void missed_describe(const struct missed *missed, const struct region_pool *pool, char *text, size_t bytes)
{
	text[0] = '\0';
	if (!pool)
		return;
	uint64_t unserved = region_pool_unserved(pool);
	uint64_t strangers = region_pool_strangers(pool);
	uint64_t crowded_out = region_pool_crowded_out(pool);
	int length = 0;
	if (unserved || missed->incomplete || missed->declined)
		length = snprintf(text, bytes,
		    "not profiled: %" PRIu64 " programs without a free region, %" PRIu64
		    " that did not finish attaching",
		    unserved, missed->incomplete);
	if (region_pool_unmapped(pool) && length < (int)bytes)
		length += snprintf(text + length, bytes - (size_t)length,
		    ", for %" PRIu64 " the sampler had no address space left (ulimit -v)",
		    region_pool_unmapped(pool));
	if (missed->declined && length < (int)bytes)
		length += snprintf(text + length, bytes - (size_t)length, ", and %" PRIu64 " more: %s",
		    missed->declined, missed->declined_text);
	if (missed->executed && length < (int)bytes)
		length += snprintf(text + length, bytes - (size_t)length,
		    "%s%" PRIu64 " processes after an exec; the last %s",
		    length ? "; " : "not profiled: ", missed->executed, missed->executed_text);
	if (missed->unchosen && length < (int)bytes)
		length += snprintf(text + length, bytes - (size_t)length,
		    "%snot chosen by --only and --exclude: %" PRIu64 " programs, the last %s",
		    length ? "; " : "", missed->unchosen, missed->unchosen_title);
	if (strangers && length < (int)bytes)
		length += snprintf(text + length, bytes - (size_t)length,
		    "%srefused at the region socket: %" PRIu64 " connections without the session's cookie",
		    length ? "; " : "", strangers);
	if (crowded_out && length < (int)bytes)
		snprintf(text + length, bytes - (size_t)length,
		    "%sdropped at the region socket: %" PRIu64
		    " connections that had sent nothing yet, among too many",
		    length ? "; " : "", crowded_out);
}
