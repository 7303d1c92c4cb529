/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The text of /etc/ld.so.preload, see ld.so(8): paths separated by blanks, newlines or colons; # begins a
 * comment. Pure: text in, text out.
 */
#ifndef SAMPLER_ENABLE_PRELOAD_FILE_H
#define SAMPLER_ENABLE_PRELOAD_FILE_H

#include <stddef.h>

#define PRELOAD_FILE "/etc/ld.so.preload"

enum preload_file_state {
	PRELOAD_FILE_ABSENT,
	PRELOAD_FILE_FIRST,  /* the library is the first entry */
	PRELOAD_FILE_BEHIND, /* another library is before it: that one's malloc is called, and not ours */
};

enum preload_file_state preload_file_state(const char *text, const char *library);

/* The library as the first line, the rest as it was but without other entries of it. NULL: no memory; the
 * caller frees it. */
char *preload_file_add(const char *text, const char *library);

/* Without its entries, and without the lines that nothing else was in. NULL: no memory; the caller frees
 * it. */
char *preload_file_remove(const char *text, const char *library);

#endif
