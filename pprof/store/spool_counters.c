/* SPDX-License-Identifier: Apache-2.0 */
#include "pprof/store/spool_counters.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

size_t spool_counters_print(const struct spool_counters *counters, char text[SPOOL_COUNTERS_BYTES])
{
	return (size_t)snprintf(text, SPOOL_COUNTERS_BYTES,
	    "sent %" PRIu64 "\nretried %" PRIu64 "\nrejected %" PRIu64 "\ndropped %" PRIu64
	    "\ngiven_up %" PRIu64 "\npassed_over %" PRIu64 "\nresent %" PRIu64 "\ndenied %" PRIu64
	    "\ndenied_since_s %" PRIu64 "\nsending %" PRIu64 "\n",
	    counters->sent, counters->retried, counters->rejected, counters->dropped, counters->given_up,
	    counters->passed_over, counters->resent, counters->denied, counters->denied_since_s,
	    counters->sending);
}

void spool_counters_parse(const uint8_t *bytes, size_t length, struct spool_counters *counters)
{
	struct {
		const char *name;
		uint64_t *value;
	} lines[] = {{"sent ", &counters->sent}, {"retried ", &counters->retried},
	    {"rejected ", &counters->rejected}, {"dropped ", &counters->dropped},
	    {"given_up ", &counters->given_up}, {"passed_over ", &counters->passed_over},
	    {"resent ", &counters->resent}, {"denied ", &counters->denied},
	    {"denied_since_s ", &counters->denied_since_s}, {"sending ", &counters->sending}};
	char text[SPOOL_COUNTERS_BYTES];

	*counters = (struct spool_counters){0};
	if (length >= sizeof(text))
		return;
	memcpy(text, bytes, length);
	text[length] = '\0';
	for (char *line = text; *line; line += strcspn(line, "\n"), line += *line == '\n')
		for (size_t i = 0; i < sizeof(lines) / sizeof(lines[0]); i++)
			if (strncmp(line, lines[i].name, strlen(lines[i].name)) == 0)
				*lines[i].value = strtoull(line + strlen(lines[i].name), NULL, 10);
}
