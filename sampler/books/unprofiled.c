/* SPDX-License-Identifier: Apache-2.0 */
#include "sampler/books/unprofiled.h"

#include "pprof/text/text.h"
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
	utf8_disarm(unprofiled->executed_text, strlen(unprofiled->executed_text));
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

static void append_count(char *text, size_t bytes, uint64_t count, const char *noun, const char *nouns)
{
	if (count)
		text_append(text, bytes, "%s%" PRIu64 " %s", text[0] ? ", " : "not profiled: ", count,
		    count == 1 ? noun : nouns);
}

/* Something that is no reason for not being profiled. */
static void append_aside(char *text, size_t bytes, const char *what, uint64_t count, const char *nouns)
{
	if (count)
		text_append(text, bytes, "%s%s: %" PRIu64 " %s", text[0] ? "; " : "", what, count, nouns);
}

void unprofiled_describe(
    const struct unprofiled *unprofiled, const struct region_pool *pool, char *text, size_t bytes)
{
	text[0] = '\0';
	if (!pool)
		return;
	const uint64_t unmapped = region_pool_unmapped(pool), strangers = region_pool_strangers(pool),
	               crowded_out = region_pool_crowded_out(pool);
	append_count(text, bytes, region_pool_unserved(pool), "program without a free region",
	    "programs without a free region");
	if (unmapped)
		text_append(text, bytes,
		    " (for %" PRIu64 " of them the sampler had no address space left, ulimit -v)", unmapped);
	append_count(text, bytes, unprofiled->incomplete, "program that did not finish attaching",
	    "programs that did not finish attaching");
	append_count(text, bytes, unprofiled->declined, "program: ", "programs, the last one: ");
	if (unprofiled->declined)
		text_append(text, bytes, "%s", unprofiled->declined_text);
	append_count(text, bytes, unprofiled->executed, "process after an exec; the last ",
	    "processes after an exec; the last ");
	if (unprofiled->executed)
		text_append(text, bytes, "%s", unprofiled->executed_text);
	append_aside(text, bytes, "not chosen by --only and --exclude", unprofiled->unchosen,
	    unprofiled->unchosen == 1 ? "program, " : "programs, the last ");
	if (unprofiled->unchosen)
		text_append(text, bytes, "%s", unprofiled->unchosen_title);
	append_aside(text, bytes, "refused at the region socket", strangers,
	    strangers == 1 ? "connection without the session's cookie"
	                   : "connections without the session's cookie");
	append_aside(text, bytes, "dropped at the region socket", crowded_out,
	    crowded_out == 1 ? "connection that had sent nothing yet, among too many"
	                     : "connections that had sent nothing yet, among too many");
}
