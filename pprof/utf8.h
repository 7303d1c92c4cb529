/* SPDX-License-Identifier: Apache-2.0 */
/*
 * UTF-8 as RFC 3629 has it: no overlong forms, no surrogates, nothing above U+10FFFF.
 *
 * Paths, symbols and process names are bytes; protobuf strings must be UTF-8, and some readers refuse a whole
 * profile for one that is not.
 */
#ifndef PPROF_UTF8_H
#define PPROF_UTF8_H

#include <stddef.h>

/* Length in bytes of the longest valid prefix; len if all is well. */
size_t utf8_valid_prefix(const void *bytes, size_t len);

/* At most this many bytes come out of utf8_sanitize() for len bytes. */
#define UTF8_SANITIZED_MAX(len) (3 * (len))

/*
 * Copies, with each maximal broken sequence (Unicode 15, 3.9, "U+FFFD substitution of maximal subparts") and
 * each NUL replaced by U+FFFD. Returns the length written; no terminator is added.
 */
size_t utf8_sanitize(char *out, const void *bytes, size_t len);

#endif
