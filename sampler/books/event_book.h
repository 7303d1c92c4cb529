/* SPDX-License-Identifier: Apache-2.0 */
/* The book of one event in one process: what its samples stand for, by stack and, if asked for, by thread. */
#ifndef SAMPLER_BOOKS_EVENT_BOOK_H
#define SAMPLER_BOOKS_EVENT_BOOK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct event_row {
	uint32_t stack, tid; /* tid 0: not told apart */
	uint64_t samples;
	uint64_t value; /* what the samples stand for: events, or ns of a clock */
	uint64_t bytes; /* for faults: bytes of the pages that were added */
};

struct event_book;

/* Adds up samples, value and bytes. */
void event_row_add(struct event_row *sum, const struct event_row *row);

struct event_book *event_book_new(void);       /* NULL: out of memory */
void event_book_free(struct event_book *book); /* NULL is fine */

/* Adds row->samples, value and bytes to the row with its stack and tid. False when memory has
 * run out or the book is full. */
bool event_book_add(struct event_book *book, const struct event_row *row);

/* A full book refuses rows for new stacks and threads. */
void event_book_set_full(struct event_book *book, bool full);

uint64_t event_book_bytes(const struct event_book *book); /* memory that the book takes */

size_t event_book_count(const struct event_book *book);
const struct event_row *event_book_rows(const struct event_book *book);

/* The sum of all rows; its stack and tid are 0. */
struct event_row event_book_total(const struct event_book *book);

#endif
