/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The output of a command: a file (which appears whole or not at all), a pipe, or a terminal. On a terminal
 * it goes through a pager, in colours, no wider than the terminal.
 *
 * Output is collected and written at the end: a command that fails half way has written nothing.
 * Environment: COLUMNS (width, also for a pipe), NO_COLOR, TERM, HEAPTAP_PAGER or PAGER ("" and "cat":
 * none), LESS, LC_ALL, LC_CTYPE, LANG.
 */
#ifndef SAMPLER_LINUX_SCREEN_H
#define SAMPLER_LINUX_SCREEN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

struct screen {
	FILE *out;
	int width; /* columns; 0: no limit */
	bool colours, pages;
	bool is_ascii;    /* the locale has no UTF-8: only ASCII is printed around names */
	const char *path; /* NULL: standard output */
	char *text;
	size_t text_bytes, text_capacity, max_bytes;
};

/* path NULL: standard output. If the output takes more than max_bytes, screen_close() fails. Do not move the
 * struct until then. 0 or -ENOMEM. */
int screen_open(struct screen *screen, const char *path, bool pages, size_t max_bytes);

/* Writes the output and ends the screen. Returns the exit status: `status`, or 1 after a line that says what
 * failed. */
int screen_close(struct screen *screen, int status);

enum screen_style { SCREEN_PLAIN, SCREEN_HEAD, SCREEN_DIM, SCREEN_MORE, SCREEN_LESS };

/* The sequence that begins a style; "" without colours. SCREEN_PLAIN ends all other styles. */
const char *screen_style(const struct screen *screen, enum screen_style style);

/* The columns of the descriptor's terminal, or what COLUMNS says. 0 if it is not a terminal. */
int screen_width(int fd);

/* Prints text in at most `room` columns (0 or less: no limit), without its middle if it is too long. Never
 * prints a byte that moves the cursor: names may come from a hostile process. Returns the columns used. */
int screen_text(const struct screen *screen, const char *text, int room);

/* The same for a function's name, which loses folders and scopes first (pprof/text/short_name.h). */
int screen_name(const struct screen *screen, const char *name, int room);

/* The number of columns that text takes. */
int screen_columns(const char *text);

/* Prints text as lines of whole words that fit the width, each after `indent` blanks. */
void screen_lines(const struct screen *screen, int indent, const char *text);

/* The same, with the label in place of the first line's blanks. */
void screen_hanging(const struct screen *screen, const char *label, int indent, const char *text);

/* Is the terminal too narrow for all columns of a table? */
bool screen_is_narrow(const struct screen *screen);

/* The columns that are left after `used` columns, at least 16. 0: no limit. */
int screen_room(const struct screen *screen, int used);

#endif
