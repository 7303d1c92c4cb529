/* SPDX-License-Identifier: Apache-2.0 */
/* Amounts in tables (pprof/text/amount.h), and how sure they are. */
#ifndef SAMPLER_TERMINAL_AMOUNT_H
#define SAMPLER_TERMINAL_AMOUNT_H

#include "pprof/text/amount.h"

#include <stdbool.h>

/* The standard error of an estimate from so many samples, in at most 9 columns: "+-2.8%"; "+-58%?" if so few
 * samples cannot tell the error; "exact"; "" if the error is unknown (unsure). */
const char *amount_doubt(double value, double samples, double variance, bool unsure, char text[AMOUNT_BYTES]);

#endif
