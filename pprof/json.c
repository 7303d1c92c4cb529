/* SPDX-License-Identifier: Apache-2.0 */
#include "pprof/json.h"

void json_string(FILE *out, const char *text)
{
	putc('"', out);
	for (const unsigned char *at = (const unsigned char *)text; *at; at++) {
		if (*at == '"' || *at == '\\')
			fprintf(out, "\\%c", *at);
		else if (*at < 0x20 || *at == 0x7f || *at == '<')
			fprintf(out, "\\u%04x", *at);
		else
			putc(*at, out);
	}
	putc('"', out);
}
