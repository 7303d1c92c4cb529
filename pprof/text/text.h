/* SPDX-License-Identifier: Apache-2.0 */
/* Text in a buffer of fixed size: composed piece by piece, or decoded. */
#ifndef PPROF_TEXT_TEXT_H
#define PPROF_TEXT_TEXT_H

#include <stddef.h>

/* Appends to the string in text; what does not fit is cut off. text_bytes 0: nothing is done, and text may
 * be NULL. */
__attribute__((format(printf, 3, 4))) void text_append(
    char *text, size_t text_bytes, const char *format, ...);

/* Decodes percent-encoded text, as in URLs and in W3C baggage, in place. A '%' that no two hexadecimal digits
 * follow stands for itself. Returns the new length. */
size_t text_percent_decode(char *text, size_t length);

#endif
