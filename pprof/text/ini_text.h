/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Text of the INI form, by libinih: `[SECTION]`, `KEY = VALUE`, comments after `;` and `#` at the beginning
 * of a line and after ` ;` and ` #`, a line that begins with a space goes on with the key before. What
 * libinih would cut in silence (lines, names of sections and of keys that are too long) is an error here,
 * and a section without a key is not lost.
 */
#ifndef PPROF_TEXT_INI_TEXT_H
#define PPROF_TEXT_INI_TEXT_H

#include <stddef.h>

enum { INI_TEXT_ERROR_BYTES = 512 };

/* Each returns 0, or -errno with what is wrong and what is allowed in error. */
struct ini_text_reader {
	/* NULL: of no interest. line: counted from 1. */
	int (*section)(void *context, const char *section, int line, char error[INI_TEXT_ERROR_BYTES]);
	/* section "": before the first one. */
	int (*value)(void *context, const char *section, const char *name, const char *value, int line,
	    char error[INI_TEXT_ERROR_BYTES]);
	void *context;
};

/* Stops at the first error: 0, or -errno with "NAME:LINE: what is wrong" in error. */
int ini_text_parse(const struct ini_text_reader *reader, const char *text, const char *name, char *error,
    size_t error_bytes);

#endif
