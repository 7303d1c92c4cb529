/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Suppressions that a program brings along: LeakSanitizer's hook `const char
 * *__lsan_default_suppressions(void)`.
 *
 * It is not called, which would run the program: its code is read. A function that returns a constant string
 * is one instruction that loads its address, and that is all that is understood; anything else counts as
 * none.
 */
#ifndef SAMPLER_REPORT_LSAN_H
#define SAMPLER_REPORT_LSAN_H

#include "pprof/origin.h"
#include "pprof/traces.h"

/* From the file of the program's own frames, if it is still there with the same build id. The caller frees
 * the text; NULL: there is none. */
char *lsan_suppressions(const struct traces *traces, const struct origin *origin);

#endif
