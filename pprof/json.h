/* SPDX-License-Identifier: Apache-2.0 */
/* Strings in JSON (RFC 8259), for files that hold names from anywhere. */
#ifndef PPROF_JSON_H
#define PPROF_JSON_H

#include <stdio.h>

/* Writes a quoted string. text is valid UTF-8. '<' is escaped too: the same text may stand in a page's
 * script. */
void json_string(FILE *out, const char *text);

#endif
