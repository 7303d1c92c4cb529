/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What changed between two columns, in one sentence, the same wherever a difference is shown:
 *
 *	In use rose by 40.1 MiB +- 13 %, more than chance: keepUpload +40.1 MiB.
 */
#ifndef PPROF_EXPORT_CHANGE_TEXT_H
#define PPROF_EXPORT_CHANGE_TEXT_H

#include "pprof/analysis/column_diff.h"

enum { CHANGE_TEXT_BYTES = 768 };

/* compared: of these traces and this kind, not scaled. *function: the first one that the sentence names, as
 * in the traces, which own it; "" none. Names may come from a hostile process, as those in answer.h. */
void change_text(char text[CHANGE_TEXT_BYTES], const char **function, const struct traces *t,
    enum measure_kind kind, const struct column_diff *compared);

#endif
