/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The answer (pprof/export/answer.h) at the end of a session: what `heaptap report` says first of the
 * profiles that were written. They are read in a child, which has a bounded time.
 */
#ifndef SAMPLER_SESSION_END_ANSWER_H
#define SAMPLER_SESSION_END_ANSWER_H

#include "sampler/snapshot/heap_source.h"

#include <stdio.h>

/* Writes the answer for these files, in lines of at most so many columns (0: no limit). */
typedef void end_answer_writer(FILE *out, char *const *paths, int count, int width);

/* Who can do that is above us (sampler/main.c). NULL: nobody, and there is no answer. */
void end_answer_by(end_answer_writer *writer);

/* Lines, each with a newline; NULL where there is nothing to say: no snapshot but the last ones was written,
 * some are not known, or it took too long. The caller frees it. */
char *end_answer_make(const struct heap_source *source, int width);

#endif
