/* SPDX-License-Identifier: Apache-2.0 */
/* A reading of resident memory in words: for the end summary, for `heaptap doctor`, and as a comment of a
 * profile. */
#ifndef SAMPLER_WRITE_RESIDENT_TEXT_H
#define SAMPLER_WRITE_RESIDENT_TEXT_H

#include "sampler/write/resident_watch.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

enum { RESIDENT_TEXT_ROWS = RESIDENT_KINDS + 1, RESIDENT_TEXT_BYTES = 160 };

/* Makes a line for each part that is not zero, in the order of the kinds: " 3.1 MiB heap in use, +- 200.0
 * KiB". sampled: the reading has estimates of what is in use. Returns the number of lines. */
size_t resident_text_rows(
    const struct resident_reading *reading, bool sampled, char rows[RESIDENT_TEXT_ROWS][RESIDENT_TEXT_BYTES]);

/* Prints the largest reading when a process has ended, without parts below a hundredth of the sum. Prints
 * nothing if there was no reading. end_ns: when the end was seen. */
void resident_text_print(FILE *out, const struct resident_watch *watch, uint64_t end_ns);

/* "rss: total=34017280 heap=2097152 heap_error=65536 slack=1048576 anonymous=... (bytes; smaps, TIME)".
 * heap, slack, anonymous, code, files, shared, stacks, heaptap and kernel add up to total; slack may be
 * below 0. */
void resident_text_comment(const struct resident_reading *reading, char *text, size_t text_bytes);

#endif
