/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What heaptap has to say to its user: one line on stderr, "heaptap: " in front, written with one write(2) so
 * that lines of the front, the sampler and COMMAND do not tear each other apart. What a terminal must not be
 * sent (utf8_disarm) is shown as '?': names and paths in a line may come from the target.
 */
#ifndef SAMPLER_TERMINAL_LOG_LINE_H
#define SAMPLER_TERMINAL_LOG_LINE_H

#define LOG_LINE_BYTES 2048 /* longer lines are cut */

/* No newline in the format. Keeps errno. */
__attribute__((format(printf, 1, 2))) void log_line(const char *format, ...);

/* There is no more to say: who reads our stderr to its end does not wait for us. */
void log_line_end(void);

#endif
