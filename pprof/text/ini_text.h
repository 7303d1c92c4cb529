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

/* Writes what is wrong; returns -EINVAL. */
__attribute__((format(printf, 2, 3))) int ini_text_wrong(
    char error[INI_TEXT_ERROR_BYTES], const char *format, ...);

/* Each returns 0, or -errno with what is wrong and what is allowed in error. */
struct ini_text_reader {
	/* may be NULL. line: counted from 1. */
	int (*section)(void *context, const char *section, int line, char error[INI_TEXT_ERROR_BYTES]);
	/* section "": before the first one. */
	int (*value)(void *context, const char *section, const char *name, const char *value, int line,
	    char error[INI_TEXT_ERROR_BYTES]);
	/* NULL: the reading stops at the first fault. Else it goes on behind each, and tells of it: a line
	 * "NAME:LINE: what is wrong". What stands in a section that is wrong itself is passed over. */
	void (*fault)(void *context, const char *text);
	void *context;
};

/* 0, or -errno with the first fault in error, "NAME:LINE: what is wrong". */
int ini_text_parse(const struct ini_text_reader *reader, const char *text, const char *name, char *error,
    size_t error_bytes);

#endif
