/* SPDX-License-Identifier: Apache-2.0 */
#include "sampler/books/unprofiled.h"

#include "pprof/text/utf8.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

void unprofiled_note_incomplete(struct unprofiled *unprofiled)
{
	unprofiled->incomplete++;
}

void unprofiled_note_declined(struct unprofiled *unprofiled, const char *why)
{
	unprofiled->declined++;
	unprofiled->declined_text = why;
}

void unprofiled_note_executed(struct unprofiled *unprofiled, const char *unseen)
{
	unprofiled->executed++;
	snprintf(unprofiled->executed_text, sizeof(unprofiled->executed_text), "%s", unseen);
}

void unprofiled_note_unchosen(struct unprofiled *unprofiled, const char *title)
{
	unprofiled->unchosen++;
	snprintf(unprofiled->unchosen_title, sizeof(unprofiled->unchosen_title), "%s", title);
	utf8_disarm(unprofiled->unchosen_title, strlen(unprofiled->unchosen_title));
}

void unprofiled_note_command(struct unprofiled *unprofiled, bool unchosen)
{
	unprofiled->command_seen = true;
	unprofiled->command_unchosen = unchosen;
}

void unprofiled_note_command_declined(struct unprofiled *unprofiled, const char *why)
{
	unprofiled->command_declined_text = why;
}

void unprofiled_describe(
    const struct unprofiled *unprofiled, const struct region_pool *pool, char *text, size_t bytes)
{
	text[0] = '\0';
	if (!pool)
		return;
	uint64_t unserved = region_pool_unserved(pool);
	uint64_t strangers = region_pool_strangers(pool);
	uint64_t crowded_out = region_pool_crowded_out(pool);
	int length = 0;
	if (unserved || unprofiled->incomplete || unprofiled->declined)
		length = snprintf(text, bytes,
		    "not profiled: %" PRIu64 " programs without a free region, %" PRIu64
		    " that did not finish attaching",
		    unserved, unprofiled->incomplete);
	if (region_pool_unmapped(pool) && length < (int)bytes)
		length += snprintf(text + length, bytes - (size_t)length,
		    ", for %" PRIu64 " the sampler had no address space left (ulimit -v)",
		    region_pool_unmapped(pool));
	if (unprofiled->declined && length < (int)bytes)
		length += snprintf(text + length, bytes - (size_t)length, ", and %" PRIu64 " more: %s",
		    unprofiled->declined, unprofiled->declined_text);
	if (unprofiled->executed && length < (int)bytes)
		length += snprintf(text + length, bytes - (size_t)length,
		    "%s%" PRIu64 " processes after an exec; the last %s",
		    length ? "; " : "not profiled: ", unprofiled->executed, unprofiled->executed_text);
	if (unprofiled->unchosen && length < (int)bytes)
		length += snprintf(text + length, bytes - (size_t)length,
		    "%snot chosen by --only and --exclude: %" PRIu64 " programs, the last %s",
		    length ? "; " : "", unprofiled->unchosen, unprofiled->unchosen_title);
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
