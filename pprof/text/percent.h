/* SPDX-License-Identifier: Apache-2.0 */
/* Percent-encoded text, as in URLs and in W3C baggage. Pure. */
#ifndef PPROF_TEXT_PERCENT_H
#define PPROF_TEXT_PERCENT_H

#include <stddef.h>

/* In place; a '%' that no two hexadecimal digits follow stands for itself. Returns the new length. */
size_t percent_decode(char *text, size_t length);

#endif
