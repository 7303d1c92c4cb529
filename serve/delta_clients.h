/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Who has asked for delta_heap, and what of each process they have: a client is its client= or else its
 * address and User-Agent. A bounded number; who has not asked for longest is forgotten first, and gets
 * nothing as allocated the next time, instead of everything since the start.
 */
#ifndef SERVE_DELTA_CLIENTS_H
#define SERVE_DELTA_CLIENTS_H

#include "serve/snapshots.h"

enum { DELTA_CLIENTS_MAX = 1024, DELTA_CLIENTS_NAME_BYTES = 256 };

#define DELTA_CLIENTS_BYTES ((size_t)64 << 20)

struct delta_clients;

struct delta_clients *delta_clients_new(void); /* NULL: no memory */
void delta_clients_free(struct delta_clients *clients);

/* The profile that this client has of that process, held for the callee; NULL: none. *unknown: it may have
 * had one, which was forgotten, or from a server before this one. */
struct blob *delta_clients_last(
    struct delta_clients *clients, const char *name, const struct process_key *key, bool *unknown);

/* It has got this one now. */
void delta_clients_note(
    struct delta_clients *clients, const char *name, const struct process_key *key, struct blob *profile);

#endif
