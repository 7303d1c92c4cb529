/* SPDX-License-Identifier: Apache-2.0 */
#include "pprof/text/log_line.h"

#include "pprof/text/utf8.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

void log_line(const char *format, ...)
{
	static const char prefix[] = "heaptap: ";
	char line[LOG_LINE_BYTES];
	size_t length = sizeof(prefix) - 1;
	int saved = errno;
	int more;
	va_list args;

	memcpy(line, prefix, length);
	va_start(args, format);
	more = vsnprintf(line + length, sizeof(line) - length - 1, format, args);
	va_end(args);
	if (more < 0)
		more = 0;
	length += (size_t)more;
	if (length > sizeof(line) - 2)
		length = sizeof(line) - 2;
	utf8_disarm(line, length);
	line[length++] = '\n';
	/* If stderr is closed or full, there is nowhere to report that. */
	if (write(STDERR_FILENO, line, length) < 0)
		errno = saved;
	errno = saved;
}

void log_lines(const char *text)
{
	while (*text) {
		size_t length = strcspn(text, "\n");

		log_line("%.*s", (int)length, text);
		text += length + (text[length] != '\0');
	}
}

void log_line_end(void)
{
	int null = open("/dev/null", O_RDWR | O_CLOEXEC);

	if (null < 0)
		return;
	dup2(null, STDERR_FILENO);
	close(null);
}
