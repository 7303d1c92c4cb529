/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Lines for the user on stderr, "heaptap: " in front, each written with one write(2). Characters that are
 * unsafe on a terminal are shown as '?': servers' answers and file names may be in a line.
 */
#ifndef PUSH_NOTICE_H
#define PUSH_NOTICE_H

#include <stddef.h>

#define NOTICE_BYTES 2048 /* longer lines are cut */

/* -1: only what went wrong; 0; 1: what is done, too. */
extern int notice_verbosity;

/* No newline in the format. Keeps errno. */
__attribute__((format(printf, 1, 2))) void notice(const char *format, ...);

/* Appends to the string in text; what does not fit is cut off. */
__attribute__((format(printf, 3, 4))) void notice_append(
    char *text, size_t text_bytes, const char *format, ...);

#endif
