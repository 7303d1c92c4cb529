/* SPDX-License-Identifier: Apache-2.0 */
#include "pprof/text/text.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

void text_append(char *text, size_t text_bytes, const char *format, ...)
{
	size_t length = text_bytes ? strnlen(text, text_bytes) : 0;
	va_list args;

	if (length + 1 >= text_bytes)
		return;
	va_start(args, format);
	vsnprintf(text + length, text_bytes - length, format, args);
	va_end(args);
}
