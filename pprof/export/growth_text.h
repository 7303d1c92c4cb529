/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What grows, in words: since when, how fast, for how long. Each function returns `text`.
 *
 * Times are in the local time zone: a process that can open no file any more has called tzset() before.
 */
#ifndef PPROF_EXPORT_GROWTH_TEXT_H
#define PPROF_EXPORT_GROWTH_TEXT_H

#include <stdint.h>

enum { GROWTH_TEXT_BYTES = 64 };

/* "12:23:41"; with the date, and without seconds, if the series is longer than a day. */
const char *growth_text_clock(int64_t time_ns, double series_s, char text[GROWTH_TEXT_BYTES]);

/* "1.2 MiB a minute", in the unit of time that gives a readable number. */
const char *growth_text_rate(double bytes_per_s, char text[GROWTH_TEXT_BYTES]);

/* "40 s", "10 min", "3 h" */
const char *growth_text_span(double span_s, char text[GROWTH_TEXT_BYTES]);

/* " +- 10 %", the standard error of an estimate; "" if there is none. */
const char *growth_text_error(double value, double variance, char text[GROWTH_TEXT_BYTES]);

#endif
