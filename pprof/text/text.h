/* SPDX-License-Identifier: Apache-2.0 */
/* Composes text piece by piece in a buffer of fixed size. */
#ifndef PPROF_TEXT_TEXT_H
#define PPROF_TEXT_TEXT_H

#include <stddef.h>

/* Appends to the string in text; what does not fit is cut off. text_bytes 0: nothing is done, and text may
 * be NULL. */
__attribute__((format(printf, 3, 4))) void text_append(
    char *text, size_t text_bytes, const char *format, ...);

#endif
