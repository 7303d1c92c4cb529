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

static int hex_digit(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	c = (char)(c | 0x20);
	return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

size_t text_percent_decode(char *text, size_t length)
{
	size_t to = 0;

	for (size_t i = 0; i < length; i++) {
		int high = text[i] == '%' && i + 2 < length ? hex_digit(text[i + 1]) : -1;
		int low = high >= 0 ? hex_digit(text[i + 2]) : -1;

		if (low >= 0) {
			text[to++] = (char)(high << 4 | low);
			i += 2;
		} else {
			text[to++] = text[i];
		}
	}
	return to;
}
