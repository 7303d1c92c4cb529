/* SPDX-License-Identifier: Apache-2.0 */
#include "sampler/cmd/doctor/finding.h"

#include "pprof/text/utf8.h"

#include <stdarg.h>
#include <string.h>

enum { LINE_BYTES = 2048 };

void finding_say(
    struct findings *findings, enum finding_level level, const char *fix, const char *format, ...)
{
	static const char *const words[] = {
	    [FINDING_GOOD] = "ok", [FINDING_NOTE] = "note", [FINDING_BAD] = "bad"};
	char line[LINE_BYTES];
	va_list args;

	va_start(args, format);
	vsnprintf(line, sizeof(line), format, args);
	va_end(args);
	utf8_disarm(line, strlen(line));
	fprintf(findings->out, "%-5s %s\n", words[level], line);
	if (fix)
		fprintf(findings->out, "      fix: %s\n", fix);
	findings->bad = findings->bad || level == FINDING_BAD;
}
