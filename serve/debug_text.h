/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A profile as text: for debug=1, and for /debug/pprof/symbol. Pure.
 *
 * A heap profile has the format of heapprofile, which pprof, Go's tools and gperftools' pprof read. The names
 * of functions are comments in it, as Go writes them.
 *
 *     heap profile: 3: 300 [5: 500] @ heapprofile
 *     3: 300 [5: 500] @ 0x55d0c0ffee 0x55d0c0ff00
 *     #	0x55d0c0ffed	main+0x0	/src/main.c:12
 *
 *     MAPPED_LIBRARIES:
 *     55d0c0000000-55d0c0010000 r-xp 00001000 00:00 0 /usr/bin/program
 */
#ifndef SERVE_DEBUG_TEXT_H
#define SERVE_DEBUG_TEXT_H

#include <stdbool.h>
#include <stdio.h>

struct profile;

/* False: it is no heap profile. */
bool debug_text_write_heap(FILE *out, const struct profile *profile);

/* Any other profile: its types, and each stack with its values. */
void debug_text_write_any(FILE *out, const struct profile *profile);

/* The names of addresses. query: "0x4005d0+0x4005e0". Writes "num_symbols: 1", and a line for each address
 * that the profile knows, as Go's handler does. profile NULL: no address is known. 0 or -ENOMEM. */
int debug_text_write_symbols(FILE *out, const char *query, const struct profile *profile);

#endif
