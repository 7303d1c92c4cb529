/* SPDX-License-Identifier: Apache-2.0 */
/*
 * All processes that clients can look at: those that samplers list now, and those that profile files are of.
 * The catalog looks again when a request comes and the last look is more than a second old. Without requests
 * it looks every few seconds, for the points of the time lines.
 */
#ifndef SERVE_CATALOG_H
#define SERVE_CATALOG_H

#include "pprof/store/spool_files.h"
#include "pprof/table/series.h"
#include "sampler/core/control_list.h"
#include "serve/broker_client.h"
#include "serve/catalog_files.h"
#include "serve/counters.h"
#include "serve/jobs.h"
#include "serve/route.h"
#include "serve/snapshots.h"

enum { CATALOG_NAME_BYTES = 129 };

struct catalog_process {
	struct process_key key; /* server 0: it has ended, or nobody samples it now */
	char program[CATALOG_NAME_BYTES], service[CATALOG_NAME_BYTES];
	char name[CATALOG_NAME_BYTES]; /* tells it apart from others of the program; else the program */
	const char *host, *session;    /* as its files say; or "" */
	const struct control_process *listed; /* NULL: only its files are known */
	struct series *history;               /* of struct catalog_point; NULL: none */
	const struct catalog_file **files;    /* its profiles, by time */
	size_t file_count;
	int64_t start_ns; /* since 1970 */
};

struct catalog_setup {
	struct broker_client *broker;
	struct snapshots *snapshots;
	struct jobs *jobs;
	struct counters *counters;
	bool with_files, with_samplers;
};

struct catalog;

struct catalog *catalog_new(const struct catalog_setup *setup); /* NULL: no memory */

/* Somebody who waits for a look. ready() is called once, from catalog_want() or later. */
struct catalog_waiter {
	struct catalog_waiter *next, **link; /* link NULL: does not wait */
	uint64_t not_before_ns;
	bool needs_files; /* also the samplers' files; files that were given are always looked for */
	void (*ready)(struct catalog_waiter *waiter);
};

/* not_before_ns (monotonic): the look must not have begun earlier; 0: it may be one second old. */
void catalog_want(struct catalog *catalog, struct catalog_waiter *waiter, uint64_t not_before_ns);
void catalog_leave(struct catalog_waiter *waiter); /* ready() will not be called */

/* To be called about once a second: looks, for the time lines. */
void catalog_tend(struct catalog *catalog, uint64_t now_ns);

/* Does it look in files that were given? Does it ask samplers? */
bool catalog_has_files(const struct catalog *catalog);
bool catalog_has_samplers(const struct catalog *catalog);

/* All processes, live ones first. Valid until the next look, like everything below. */
const struct catalog_process *catalog_processes(const struct catalog *catalog, size_t *count);

/* Does the route mean the process, by pid or service? A route that says neither means all processes. */
bool catalog_is_meant(const struct catalog_process *process, const struct route *route);

/* The processes that a route means. Ended processes are among them only if no live process is meant. A route
 * that chooses none means the only process of root's or our own user's samplers, whatever other users
 * profile. Returns how many there are; at most `room` are filled in. */
size_t catalog_choose(const struct catalog *catalog, const struct route *route,
    const struct catalog_process **chosen, size_t room);

/* NULL: there is no such file. */
const struct catalog_file *catalog_file(const struct catalog *catalog, uint64_t number);

/* The lists of all samplers. */
const struct catalog_lists *catalog_lists(const struct catalog *catalog);

/* The spools of `heaptap push`, of the user that the server runs as. */
const struct spool_list *catalog_spools(const struct catalog *catalog);

/* ---- catalog_lists.c: the lists of all samplers, and when each was received */

enum {
	CATALOG_LISTS_MAX = 256,
	CATALOG_LISTS_LATE_MS = 30000, /* how long a list stays valid if its sampler does not answer */
};

struct catalog_lists {
	struct catalog_lists_item {
		struct control_list *list;
		uint64_t server;
		uint64_t said_ns;  /* monotonic: the time of the look that got the list */
		uid_t user;        /* the sampler's user */
		bool foreign;      /* the user may list only processes of his own */
		uint32_t left_out; /* rows that the broker left out: of other users' processes, or too many */
	} items[CATALOG_LISTS_MAX];
	size_t count;
};

/* Reads a list and closes fd. A list that cannot be read is left out. */
void catalog_lists_take(
    struct catalog_lists *lists, const struct broker_reply *reply, int fd, uint64_t now_ns);

/* Takes over lists of `last` that are still valid: those of this server, or of all with 0. */
void catalog_lists_keep(
    struct catalog_lists *lists, const struct catalog_lists *last, uint64_t server, uint64_t now_ns);

/* Several lists may have a row of one process. The list of a user who may list any process wins, then the
 * list of the sampler that came first. The other rows become not profiled. 0 or -ENOMEM. */
int catalog_lists_settle(struct catalog_lists *lists);

/* Replaces the lists by `next`, which is empty after that. */
void catalog_lists_renew(struct catalog_lists *lists, struct catalog_lists *next);

/* What lists said of processes over time: points for time lines, a bounded number of each process. */
enum { CATALOG_HISTORY_POINTS = 512 };

struct catalog_point {
	int64_t unix_ns;
	double inuse_bytes, error_bytes, allocated_bytes; /* NaN: not known */
	int64_t rss_bytes;                                /* -1: not known */
};

struct catalog_histories {
	struct catalog_history_entry *entries;
	size_t count;
};

/* Notes what a list says of a process now. Returns the points of the process, or NULL if there is no memory
 * or there are too many processes. now_ns: monotonic. */
struct series *catalog_histories_note(struct catalog_histories *histories, const struct process_key *key,
    const struct control_process *listed, uint64_t now_ns, int64_t unix_ns);

/* Forgets those of processes that were not noted for a while: a sampler that does not answer once, or that
 * is started again, is no end. */
void catalog_histories_sweep(struct catalog_histories *histories, uint64_t now_ns);
void catalog_histories_fini(struct catalog_histories *histories);

#endif
