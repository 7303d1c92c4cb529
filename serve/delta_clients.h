/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The clients of delta_heap, and the last profile of each process that each client got. A client is its
 * parameter client=, or else its address and User-Agent. Their number is bounded. The client that has not
 * asked for longest is forgotten first. The next time, it gets 0 as allocated, instead of everything since
 * the process' start.
 */
#ifndef SERVE_DELTA_CLIENTS_H
#define SERVE_DELTA_CLIENTS_H

#include "serve/snapshots.h"

enum { DELTA_CLIENTS_MAX = 1024, DELTA_CLIENTS_NAME_BYTES = 256 };

#define DELTA_CLIENTS_BYTES ((size_t)64 << 20)

struct delta_clients;

struct delta_clients *delta_clients_new(void); /* NULL: no memory */

/* The profile that this client got of that process, held for the caller; NULL if there is none. *unknown: the
 * client may have got a profile that was forgotten, or that an earlier server sent. */
struct blob *delta_clients_last(
    struct delta_clients *clients, const char *name, const struct process_key *key, bool *unknown);

/* Notes that the client gets this profile now. */
void delta_clients_note(
    struct delta_clients *clients, const char *name, const struct process_key *key, struct blob *profile);

#endif
