/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Profiles of live processes, made when clients ask for them. Of each process one profile is made at a time.
 * All clients that ask meanwhile get it, and for a second those that ask later. Some profiles are kept for a
 * while: a user may look at them and compare them.
 */
#ifndef SERVE_SNAPSHOTS_H
#define SERVE_SNAPSHOTS_H

#include "serve/blob.h"
#include "serve/broker_client.h"

#include <stdbool.h>
#include <sys/types.h>

enum {
	SNAPSHOTS_FRESH_MS = 1000,
	SNAPSHOTS_KEPT = 64, /* of one process */
	SNAPSHOTS_PROCESSES = 4096,
};

/* How long the kept snapshots and the time line of a process stay when no list has the process any more. */
#define SNAPSHOTS_REMEMBERED_NS (UINT64_C(60) * 1000000000)

/* Of all kept snapshots. The newest may be larger by itself, unless another user's sampler has made it. */
#define SNAPSHOTS_KEPT_BYTES ((size_t)64 << 20)

/* A process that is sampled: its sampler, and what tells it apart from all other processes, to any
 * sampler. */
struct process_key {
	uint64_t server;
	int64_t start_unix_ns;
	pid_t pid;
	/* Another user's sampler lists it, which may make up any number of processes, of any size: they may
	 * take half of the places, and their snapshots push out no others. */
	bool foreign;
};

struct kept_snapshot {
	int64_t unix_ns;
	uint64_t now_ns; /* monotonic: when the sampler was asked */
	struct blob *profile;
};

/* A profile that somebody waits for. got() is called once, from snapshots_want() or later. It gets a profile
 * to drop, or NULL with -errno and one line. */
struct snapshots_waiter {
	struct snapshots_waiter *next, **link; /* link NULL: does not wait */
	uint64_t not_before_ns;
	void (*got)(struct snapshots_waiter *waiter, struct blob *profile, int error, const char *why);
};

struct snapshots;

struct snapshots *snapshots_new(struct broker_client *broker); /* NULL: no memory */
void snapshots_free(struct snapshots *snapshots);

/* not_before_ns (monotonic): the profile must not be older; 0: it may be one second old. */
void snapshots_want(struct snapshots *snapshots, const struct process_key *key,
    struct snapshots_waiter *waiter, uint64_t not_before_ns);

/* got() will not be called. */
void snapshots_leave(struct snapshots_waiter *waiter);

/* The kept snapshots of a process, oldest first. Returns how many. */
size_t snapshots_kept(
    const struct snapshots *snapshots, const struct process_key *key, const struct kept_snapshot **kept);

/* Forgets processes for which is_there() has returned false for a while. now_ns: monotonic. */
void snapshots_sweep(struct snapshots *snapshots,
    bool (*is_there)(const void *context, const struct process_key *key), const void *context,
    uint64_t now_ns);

/* How long the last profile took, from request to answer, in ns; 0 if none has been made. */
uint64_t snapshots_last_ns(const struct snapshots *snapshots);

/*
 * ---- the clients of delta_heap, and the last profile of each process that each client got
 *
 * A client is its parameter client=, or else its address and User-Agent. The number of clients is bounded.
 * The client that has not asked for longest is forgotten first. The next time, it gets 0 as allocated,
 * instead of everything since the process' start.
 */
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
