/* SPDX-License-Identifier: Apache-2.0 */
#include "sampler/cmd/report/no_match.h"

#include "pprof/text/log_line.h"
#include "pprof/text/text.h"

enum { LINE_BYTES = 1024 };

bool no_match_describe(
    const struct traces *traces, const struct read_options *read, char *text, size_t text_bytes)
{
	const struct {
		const char *name, *regex;
		bool given;
	} filters[] = {
	    {"focus", read->focus, read->focus},
	    {"ignore", read->ignore, read->ignore},
	    {"module", read->module, read->module},
	    {"thread", read->thread, read->thread},
	    {"size", NULL, read->size_bytes.given},
	    {"age", NULL, read->age_ns.given},
	};
	bool given = false, regex = false;

	if (traces->row_count)
		return false;
	text[0] = '\0';
	text_append(text, text_bytes, "Nothing matches");
	for (size_t i = 0; i < sizeof(filters) / sizeof(filters[0]); i++) {
		if (!filters[i].given)
			continue;
		text_append(text, text_bytes, "%s --%s", given ? " with" : "", filters[i].name);
		if (filters[i].regex)
			text_append(text, text_bytes, " '%s'", filters[i].regex);
		given = true;
		regex = regex || filters[i].regex;
	}
	text_append(text, text_bytes, "%s.", regex ? " (a regular expression, in which case matters)" : "");
	return given;
}

void no_match_say(const struct traces *traces, const struct read_options *read)
{
	char line[LINE_BYTES];

	if (no_match_describe(traces, read, line, sizeof(line)))
		log_line("%s", line);
}
