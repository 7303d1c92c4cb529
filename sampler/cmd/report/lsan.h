/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Suppressions inside a program: LeakSanitizer's hook `const char *__lsan_default_suppressions(void)`.
 *
 * A call of the hook would run the program, so its code is read. A function that returns a constant string is
 * one instruction that loads the string's address. Any other form counts as "no suppressions".
 */
#ifndef SAMPLER_CMD_REPORT_LSAN_H
#define SAMPLER_CMD_REPORT_LSAN_H

#include "pprof/analysis/traces.h"
#include "pprof/model/origin.h"

/* Reads the program's file, if it still exists with the same build id. The caller frees the text. NULL if
 * there are no suppressions. */
char *lsan_suppressions(const struct traces *traces, const struct origin *origin);

#endif
