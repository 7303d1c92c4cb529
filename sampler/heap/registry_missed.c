/* SPDX-License-Identifier: Apache-2.0 */
/* What the registry says of programs that were not profiled. */
#include "sampler/heap/registry.h"

#include <inttypes.h>
#include <stdio.h>

void registry_describe_missed(const struct registry *registry, char *text, size_t bytes)
{
	text[0] = '\0';
	if (!registry->pool) /* of a daemon: its list says it of each process */
		return;
	uint64_t unserved = region_pool_unserved(registry->pool);
	uint64_t strangers = region_pool_strangers(registry->pool);
	uint64_t crowded_out = region_pool_crowded_out(registry->pool);
	int length = 0;
	if (unserved || registry->incomplete || registry->declined)
		length = snprintf(text, bytes,
		    "not profiled: %" PRIu64 " programs without a free region, %" PRIu64
		    " that did not finish attaching",
		    unserved, registry->incomplete);
	if (registry->declined && length < (int)bytes)
		length += snprintf(text + length, bytes - (size_t)length, ", and %" PRIu64 " more: %s",
		    registry->declined, registry->declined_text);
	if (registry->executed_unseen && length < (int)bytes)
		length += snprintf(text + length, bytes - (size_t)length,
		    "%s%" PRIu64 " processes after an exec; the last %s",
		    length ? "; " : "not profiled: ", registry->executed_unseen, registry->executed_text);
	if (registry->unchosen && length < (int)bytes)
		length += snprintf(text + length, bytes - (size_t)length,
		    "%snot chosen by --only and --exclude: %" PRIu64 " programs, the last %s",
		    length ? "; " : "", registry->unchosen, registry->unchosen_title);
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
