/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Profiles of live processes, made when they are asked for: one is made at a time of each, all who ask get
 * it, and for a second whoever asks gets the last one. Some are kept for a while, as moments that a user may
 * look at and compare.
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

/* Of a process that no list has any more, its moments and its time line. */
#define SNAPSHOTS_REMEMBERED_NS (UINT64_C(60) * 1000000000)

/* Of all. The newest profile may be larger by itself. */
#define SNAPSHOTS_KEPT_BYTES ((size_t)64 << 20)

/* A process that is sampled: its sampler, and what every sampler that takes it up knows it by. */
struct process_key {
	uint64_t server;
	int64_t start_unix_ns;
	pid_t pid;
	/* By a sampler of another user, who may make up any number: half of the room is for such. */
	bool foreign;
};

struct kept_snapshot {
	int64_t unix_ns;
	uint64_t now_ns; /* monotonic: when it was asked for */
	struct blob *profile;
};

/* Who waits. got() is called once, from snapshots_want() or later; the profile is the callee's to drop, NULL
 * with -errno and a line. */
struct snapshots_waiter {
	struct snapshots_waiter *next, **link; /* link NULL: it does not wait */
	uint64_t not_before_ns;
	void (*got)(struct snapshots_waiter *waiter, struct blob *profile, int error, const char *why);
};

struct snapshots;

struct snapshots *snapshots_new(struct broker_client *broker); /* NULL: no memory */
void snapshots_free(struct snapshots *snapshots);

/* not_before_ns (monotonic): an older one will not do; 0: one of the last second will. */
void snapshots_want(struct snapshots *snapshots, const struct process_key *key,
    struct snapshots_waiter *waiter, uint64_t not_before_ns);

/* got() will not be called. */
void snapshots_leave(struct snapshots_waiter *waiter);

/* The moments that are kept of a process, oldest first. Returns how many. */
size_t snapshots_kept(
    const struct snapshots *snapshots, const struct process_key *key, const struct kept_snapshot **kept);

/* Forgets processes for which `is_there` has said no for a while. now_ns: monotonic. */
void snapshots_sweep(struct snapshots *snapshots,
    bool (*is_there)(const void *context, const struct process_key *key), const void *context,
    uint64_t now_ns);

/* How long the last one took, from request to answer, in ns; 0: none has been made. */
uint64_t snapshots_last_ns(const struct snapshots *snapshots);

#endif
