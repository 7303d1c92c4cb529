/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The page on which profiles are looked at in a browser: the files of this folder, which are in the program.
 * `heaptap serve` sends them one by one; `heaptap export -f flamegraph` writes them as one file with a
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

/* end is behind the NUL that follows a file's bytes. */
static inline size_t page_length(const struct page_file *file)
{
	return (size_t)(file->end - file->bytes) - 1;
}

/* Of the served page: nothing from elsewhere, and no script but its files. */
#define PAGE_CSP                                                                                        \
	"default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; " \
	"base-uri 'none'; form-action 'none'; frame-ancestors 'none'"

/* By name, without a '/' at the beginning; the page itself is "page.html". NULL: none. */
const struct page_file *page_find(const char *name);

/* By number, for who serves or tests them all; NULL behind the last. */
const struct page_file *page_at(size_t number);

/*
 * Writes the page as one file: styles and scripts in it, and the profile, JSON of a kind in which every '<'
 * is escaped (pprof/text/json.h), where `data` writes it. Returns what that returns.
 */
int page_write(FILE *out, const char *title, int (*data)(FILE *out, void *context), void *context);

#endif
