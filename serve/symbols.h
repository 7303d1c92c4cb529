/* SPDX-License-Identifier: Apache-2.0 */
/* /debug/pprof/symbol: names of addresses, from the locations of a profile. Pure. */
#ifndef SERVE_SYMBOLS_H
#define SERVE_SYMBOLS_H

#include <stdio.h>

struct profile;

enum { SYMBOLS_QUERY_BYTES = 64 << 10 };

/* query: "0x4005d0+0x4005e0", at most SYMBOLS_QUERY_BYTES. Writes "num_symbols: 1", then a line for each
 * address that is known, as Go's handler does. profile NULL: none is. 0 or -ENOMEM. */
int symbols_write(FILE *out, const char *query, const struct profile *profile);

#endif
