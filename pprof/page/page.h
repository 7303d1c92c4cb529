/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The page that shows profiles in a browser: the files of this folder, which are part of the program.
 *
 * `heaptap serve` sends the files one by one. `heaptap export -f flamegraph` writes them as one file, with a
 * profile in it.
 */
#ifndef PPROF_PAGE_PAGE_H
#define PPROF_PAGE_PAGE_H

#include <stddef.h>
#include <stdio.h>

struct page_file {
	const char *name; /* "page.css" */
	const char *type; /* "text/html; charset=utf-8" */
	const char *bytes, *end;
};

/* `end` is behind the NUL that follows a file's bytes. */
static inline size_t page_length(const struct page_file *file)
{
	return (size_t)(file->end - file->bytes) - 1;
}

/* For the served page: it loads nothing from elsewhere, and no script but its files. */
#define PAGE_CSP                                                                                        \
	"default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; " \
	"base-uri 'none'; form-action 'none'; frame-ancestors 'none'"

/* Finds a file by its name, without a '/' at the beginning. The page itself is "page.html". NULL: there is
 * none. */
const struct page_file *page_find(const char *name);

/*
 * Writes the page as one file: styles and scripts in it, and the profile, JSON of a kind in which every '<'
 * is escaped (pprof/text/json.h), where `data` writes it. Returns what that returns.
 */
int page_write(FILE *out, const char *title, int (*data)(FILE *out, void *context), void *context);

#endif
