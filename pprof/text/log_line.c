/* SPDX-License-Identifier: Apache-2.0 */
#include "pprof/text/log_line.h"

#include "pprof/text/clock.h"
#include "pprof/text/throttle.h"
#include "pprof/text/utf8.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* Users times formats. When there are more, the one that began first is said and forgotten. */
enum { SOURCES = 64 };

#define WINDOW_NS (60 * (uint64_t)CLOCK_NS_PER_S)

/* As many units as the burst in each step: a count for each minute. */
static const struct throttle_rate rate = {
    .burst = LOG_LINE_BURST, .units = LOG_LINE_BURST, .step_ns = WINDOW_NS};

struct source {
	const char *format; /* NULL: this entry is free */
	unsigned int uid;
	uint32_t held;
	uint64_t since_ns;
	struct throttle throttle;
};

static struct source sources[SOURCES];

__attribute__((format(printf, 1, 0))) static void write_line(const char *format, va_list args)
{
	static const char prefix[] = "heaptap: ";
	char line[LOG_LINE_BYTES];
	size_t length = sizeof(prefix) - 1;
	int saved = errno;
	int more;

	memcpy(line, prefix, length);
	more = vsnprintf(line + length, sizeof(line) - length - 1, format, args);
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

void log_line(const char *format, ...)
{
	va_list args;

	va_start(args, format);
	write_line(format, args);
	va_end(args);
}

/* The window is over, or its place is needed. */
static void close_source(struct source *source)
{
	if (source->held)
		log_line("user %u: %u more lines like \"%s\" were held back", source->uid,
		    (unsigned int)source->held, source->format);
	*source = (struct source){0};
}

static struct source *find_source(unsigned int uid, const char *format, uint64_t now_ns)
{
	struct source *oldest = sources;

	for (size_t i = 0; i < SOURCES; i++) {
		if (sources[i].format == format && sources[i].uid == uid)
			return &sources[i];
		if (!sources[i].format || (oldest->format && sources[i].since_ns < oldest->since_ns))
			oldest = &sources[i];
	}
	close_source(oldest);
	*oldest = (struct source){.format = format, .uid = uid, .since_ns = now_ns};
	return oldest;
}

static bool may_say(unsigned int uid, const char *format)
{
	const uint64_t now_ns = clock_now_ns();
	struct source *source;

	if (uid == 0 || uid == geteuid())
		return true;
	source = find_source(uid, format, now_ns);
	if (now_ns - source->since_ns >= WINDOW_NS) {
		close_source(source);
		*source = (struct source){.format = format, .uid = uid, .since_ns = now_ns};
	}
	if (throttle_take(&source->throttle, &rate, now_ns))
		return true;
	source->held++;
	return false;
}

void log_line_of(unsigned int uid, const char *format, ...)
{
	va_list args;

	if (!may_say(uid, format))
		return;
	va_start(args, format);
	write_line(format, args);
	va_end(args);
}

void log_line_tell_held(bool all)
{
	const uint64_t now_ns = clock_now_ns();

	for (size_t i = 0; i < SOURCES; i++)
		if (sources[i].format && (all || now_ns - sources[i].since_ns >= WINDOW_NS))
			close_source(&sources[i]);
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
