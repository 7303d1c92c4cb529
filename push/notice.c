/* SPDX-License-Identifier: Apache-2.0 */
#include "push/notice.h"

#include "pprof/text/utf8.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

int notice_verbosity;

void notice(const char *format, ...)
{
	static const char prefix[] = "heaptap: ";
	char line[NOTICE_BYTES];
	size_t length = sizeof(prefix) - 1;
	int saved = errno, more;
	va_list args;

	memcpy(line, prefix, length);
	va_start(args, format);
	more = vsnprintf(line + length, sizeof(line) - length - 1, format, args);
	va_end(args);
	length += more > 0 ? (size_t)more : 0;
	if (length > sizeof(line) - 2)
		length = sizeof(line) - 2;
	utf8_disarm(line, length);
	line[length++] = '\n';
	/* If stderr is closed or full, there is nowhere to report that. */
	if (write(STDERR_FILENO, line, length) < 0)
		errno = saved;
	errno = saved;
}

void notice_append(char *text, size_t text_bytes, const char *format, ...)
{
	size_t length = text_bytes ? strnlen(text, text_bytes) : 0;
	va_list args;

	if (length + 1 >= text_bytes)
		return;
	va_start(args, format);
	vsnprintf(text + length, text_bytes - length, format, args);
	va_end(args);
}
