/* SPDX-License-Identifier: Apache-2.0 */
#include "pprof/store/spool_name.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

bool spool_name_is_target(const char *name)
{
	size_t length = strlen(name);

	return length && length < SPOOL_NAME_TARGET_BYTES && *name != '.' &&
	    strspn(name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-") == length;
}

void spool_name_print(const struct spool_entry *entry, char name[SPOOL_NAME_BYTES])
{
	snprintf(name, SPOOL_NAME_BYTES, "%020" PRIu64 "-%020" PRId64 "-%016" PRIx64 "-%c.pb.gz",
	    entry->number, entry->time_ns, entry->process, entry->last ? 'e' : 's');
}

bool spool_name_parse(const char *name, struct spool_entry *entry)
{
	struct spool_entry found = {.bytes = entry->bytes};
	char letter, again[SPOOL_NAME_BYTES];

	if (sscanf(name, "%20" SCNu64 "-%20" SCNd64 "-%16" SCNx64 "-%c.pb.gz", &found.number, &found.time_ns,
	        &found.process, &letter) != 4)
		return false;
	found.last = letter == 'e';
	/* The name that it would have, and no other. */
	spool_name_print(&found, again);
	/* The next entry gets a number after this one. */
	if (strcmp(again, name) != 0 || !found.number || found.number > INT64_MAX || found.time_ns < 0)
		return false;
	*entry = found;
	return true;
}
