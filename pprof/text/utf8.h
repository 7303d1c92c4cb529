/* SPDX-License-Identifier: Apache-2.0 */
/*
 * UTF-8 as defined in RFC 3629: no overlong forms, no surrogates, nothing above U+10FFFF.
 *
 * Paths, symbols and process names are bytes, but protobuf strings must be UTF-8: some readers refuse a whole
 * profile for one string that is not.
 */
#ifndef PPROF_TEXT_UTF8_H
#define PPROF_TEXT_UTF8_H

#include <stddef.h>
#include <stdio.h>

/* Length in bytes of the longest valid prefix; len if everything is valid. */
size_t utf8_valid_prefix(const void *bytes, size_t len);

/* The most bytes that utf8_sanitize() writes for len bytes. */
#define UTF8_SANITIZED_MAX(len) (3 * (len))

/*
 * Copies, with each maximal broken sequence (Unicode 15, 3.9, "U+FFFD substitution of maximal subparts") and
 * each NUL replaced by U+FFFD. Returns the length written; no terminator is added.
 */
size_t utf8_sanitize(char *out, const void *bytes, size_t len);

/*
 * Length of the character at text (valid UTF-8) if it must not be sent to a terminal, otherwise 0. Unsafe are
 * C0 controls and DEL; C1 controls (U+0080 to U+009F), which begin escape sequences as ESC does; and
 * bidirectional controls, which show a line in another order than it has (U+202A to U+202E, U+2066 to
 * U+2069; CVE-2021-42574). 0 at the final NUL.
 */
size_t utf8_control(const char *text);

/* Prints the character at text (valid UTF-8, not its end), or `instead` if it is unsafe on a terminal.
 * Returns what follows it. */
const char *utf8_put(FILE *out, const char *text, char instead);

/* Overwrites with '?' what is unsafe on a terminal: each byte of the characters above, of broken sequences,
 * and NUL. */
void utf8_disarm(char *text, size_t len);

#endif
