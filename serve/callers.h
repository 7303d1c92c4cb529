/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Who has asked for delta_heap, and what of each process they have: a caller is its client= or else its
 * address and User-Agent. A bounded number; who has not asked for longest is forgotten first, and gets
 * nothing as allocated the next time, instead of everything since the start.
 */
#ifndef SERVE_CALLERS_H
#define SERVE_CALLERS_H

#include "serve/snapshots.h"

enum { CALLERS_MAX = 1024, CALLERS_NAME_BYTES = 256 };

#define CALLERS_BYTES ((size_t)64 << 20)

struct callers;

struct callers *callers_new(void); /* NULL: no memory */
void callers_free(struct callers *callers);

/* The profile that this caller has of that process, held for the callee; NULL: none. *unknown: it may have
 * had one, which was forgotten, or from a server before this one. */
struct blob *callers_last(
    struct callers *callers, const char *name, const struct process_key *key, bool *unknown);

/* It has got this one now. */
void callers_note(
    struct callers *callers, const char *name, const struct process_key *key, struct blob *profile);

#endif
