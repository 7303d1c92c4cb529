/* SPDX-License-Identifier: Apache-2.0 */
#include "sampler/intake/smaps.h"

#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

void smaps_begin(
    struct smaps *smaps, void (*visit)(void *context, const struct smaps_mapping *mapping), void *context)
{
	smaps->visit = visit;
	smaps->context = context;
	smaps->open = smaps->broken = false;
	smaps->mapping = (struct smaps_mapping){0};
	smaps->length = 0;
}

static void close_mapping(struct smaps *smaps)
{
	if (smaps->open)
		smaps->visit(smaps->context, &smaps->mapping);
	smaps->open = false;
}

static void begin_mapping(struct smaps *smaps)
{
	struct smaps_mapping *mapping = &smaps->mapping;

	close_mapping(smaps);
	uint64_t before = mapping->range.start + mapping->range.len;
	memcpy(smaps->head, smaps->line, smaps->length + 1);
	*mapping = (struct smaps_mapping){0};
	if (!maps_parse_line(smaps->head, &mapping->range) || mapping->range.start < before) {
		smaps->broken = true;
		return;
	}
	const char *access = strchr(smaps->head, ' ');
	mapping->shared = access && access[4] == 's';
	smaps->open = true;
}

/* The number of a line like "Rss: 8 kB", which is no larger than the mapping. False if it is another
 * line. */
static bool read_amount(struct smaps *smaps, const char *name, uint64_t *bytes)
{
	size_t length = strlen(name);
	char *end;

	if (strncmp(smaps->line, name, length) != 0)
		return false;
	errno = 0;
	unsigned long long kib = strtoull(smaps->line + length, &end, 10);
	if (!smaps->open || errno || strcmp(end, " kB") != 0 || kib > smaps->mapping.range.len >> 10)
		smaps->broken = true;
	else
		*bytes = (uint64_t)kib << 10;
	return true;
}

/* The names of amounts begin with a capital letter; addresses are hexadecimal in small letters. */
static void take_line(struct smaps *smaps)
{
	smaps->line[smaps->length] = '\0';
	if (isdigit((unsigned char)smaps->line[0]) || (smaps->line[0] >= 'a' && smaps->line[0] <= 'f'))
		begin_mapping(smaps);
	else if (!read_amount(smaps, "Rss:", &smaps->mapping.rss_bytes) &&
	    !read_amount(smaps, "Swap:", &smaps->mapping.swap_bytes) &&
	    !read_amount(smaps, "Private_Dirty:", &smaps->mapping.alone_bytes) &&
	    !isupper((unsigned char)smaps->line[0]))
		smaps->broken = true;
	smaps->length = 0;
}

void smaps_feed(struct smaps *smaps, const char *bytes, size_t count)
{
	const char *end = bytes + count;

	while (bytes < end) {
		const char *newline = memchr(bytes, '\n', (size_t)(end - bytes));
		size_t part = (size_t)((newline ? newline : end) - bytes);
		size_t room = sizeof(smaps->line) - 1 - smaps->length;

		memcpy(smaps->line + smaps->length, bytes, part < room ? part : room);
		smaps->length += part < room ? part : room;
		bytes += part + (newline != NULL);
		if (newline)
			take_line(smaps);
	}
}

int smaps_end(struct smaps *smaps)
{
	if (smaps->length)
		smaps->broken = true;
	close_mapping(smaps);
	return smaps->broken ? -EPROTO : 0;
}
