/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Messages to the user: one line on stderr, "heaptap: " in front, written with one write(2) so that lines of
 * the front, the sampler and COMMAND do not mix. Characters that are unsafe on a terminal (utf8_disarm) are
 * shown as '?': names and paths in a line may come from the target.
 */
#ifndef PPROF_TEXT_LOG_LINE_H
#define PPROF_TEXT_LOG_LINE_H

#define LOG_LINE_BYTES 2048 /* longer lines are cut */

/* No newline in the format. Keeps errno. */
__attribute__((format(printf, 1, 2))) void log_line(const char *format, ...);

/* A line for each in the text. */
void log_lines(const char *text);

/* Closes stderr, so that a program that reads it to its end need not wait for us. No message may follow. */
void log_line_end(void);

#endif
