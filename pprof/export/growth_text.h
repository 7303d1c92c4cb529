/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What grows, or has changed, in words.
 *
 * Times are in the local time zone: a process that can open no file any more has called tzset() before.
 */
#ifndef PPROF_EXPORT_GROWTH_TEXT_H
#define PPROF_EXPORT_GROWTH_TEXT_H

#include <stdint.h>

#include "pprof/analysis/column_diff.h"

/* ---- growth: since when, how fast, for how long. Each function returns `text`. */

enum { GROWTH_TEXT_BYTES = 64 };

/* "12:23:41"; with the date, and without seconds, if the series is longer than a day. */
const char *growth_text_clock(int64_t time_ns, double series_s, char text[GROWTH_TEXT_BYTES]);

/* "1.2 MiB a minute", in the unit of time that gives a readable number. */
const char *growth_text_rate(double bytes_per_s, char text[GROWTH_TEXT_BYTES]);

/* "40 s", "10 min", "3 h" */
const char *growth_text_span(double span_s, char text[GROWTH_TEXT_BYTES]);

/* " +- 10 %", the standard error of an estimate; "" if there is none. */
const char *growth_text_error(double value, double variance, char text[GROWTH_TEXT_BYTES]);

/*
 * ---- what changed between two columns, in one sentence, the same wherever a difference is shown:
 *
 *	In use rose by 40.1 MiB +- 13 %, more than chance: keepUpload +40.1 MiB.
 */

enum { CHANGE_TEXT_BYTES = 768 };

/* compared: of these traces and this kind, not scaled. *function: the first one that the sentence names, as
 * in the traces, which own it; "" none. Names may come from a hostile process, as those in answer.h. */
void change_text(char text[CHANGE_TEXT_BYTES], const char **function, const struct traces *t,
    enum measure_kind kind, const struct column_diff *compared);

#endif
