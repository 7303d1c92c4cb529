/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Messages to the user: one line on stderr, "heaptap: " in front, written with one write(2) so that lines of
 * the front, the sampler and COMMAND do not mix. Characters that are unsafe on a terminal (utf8_disarm) are
 * shown as '?': names and paths in a line may come from the target.
 */
#ifndef PPROF_TEXT_LOG_LINE_H
#define PPROF_TEXT_LOG_LINE_H

#include <stdbool.h>

#define LOG_LINE_BYTES 2048 /* longer lines are cut */

/* No newline in the format. Keeps errno. */
__attribute__((format(printf, 1, 2))) void log_line(const char *format, ...);

/*
 * The same of a line that another user's process can cause as often as it likes: of one format and user there
 * are LOG_LINE_BURST a minute. How many were held back is said with the next, or by log_line_tell_held.
 * Root's and our own are not limited.
 */
enum { LOG_LINE_BURST = 20 };
__attribute__((format(printf, 2, 3))) void log_line_of(unsigned int uid, const char *format, ...);

/* To be called now and then: says what was held back more than a minute ago, or all. */
void log_line_tell_held(bool all);

/* A line for each in the text. */
void log_lines(const char *text);

/* Closes stderr, so that a program that reads it to its end need not wait for us. No message may follow. */
void log_line_end(void);

#endif
