/* SPDX-License-Identifier: Apache-2.0 */
/* Amounts in readable units, in at most 10 columns. Each function returns `text`. */
#ifndef PPROF_TEXT_AMOUNT_H
#define PPROF_TEXT_AMOUNT_H

enum { AMOUNT_BYTES = 32 };

/* "512 B", "4.3 MiB" in powers of 1024; may be negative. */
const char *amount_bytes(double bytes, char text[AMOUNT_BYTES]);

/* "1234", "12.3M": in full below a million, then in powers of 1000. */
const char *amount_count(double count, char text[AMOUNT_BYTES]);

/* A value in its sample type's unit: "bytes", "nanoseconds" ("151.5 ms", "3.4 s"); any other is a count. */
const char *amount_measure(double value, const char *unit, char text[AMOUNT_BYTES]);

#endif
