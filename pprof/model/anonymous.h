/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Names that tell nothing: a hash that is the same in every run and on every machine, so that profiles made
 * anonymous can still be compared. Someone who guesses a name can check the guess; nothing else is revealed.
 *
 * Markers that heaptap itself writes ("[lost stack]", "<unknown>") are no secret and stay; nothing else does.
 */
#ifndef PPROF_MODEL_ANONYMOUS_H
#define PPROF_MODEL_ANONYMOUS_H

enum { ANONYMOUS_BYTES = 24 };

/* buffer has ANONYMOUS_BYTES. Returns it, or name itself where there is nothing to hide. */
const char *anonymous_name(char kind, const char *name, char *buffer);

#endif
