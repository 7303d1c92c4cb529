/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What there is to look at: the processes that are sampled now, as their samplers list them, and those of the
 * profile files that were given. Looked up again when a request comes and the last look is a second old, and
 * every few seconds besides, for the points of the time lines.
 */
#ifndef SERVE_CATALOG_H
#define SERVE_CATALOG_H

#include "pprof/service/spool_list.h"
#include "sampler/control/control_list.h"
#include "serve/broker_client.h"
#include "serve/catalog_files.h"
#include "serve/catalog_history.h"
#include "serve/catalog_lists.h"
#include "serve/counters.h"
#include "serve/jobs.h"
#include "serve/route.h"
#include "serve/snapshots.h"

enum { CATALOG_NAME_BYTES = 129 };

struct catalog_process {
	struct process_key key; /* server 0: of files alone, it does not run, or nobody samples it now */
	char program[CATALOG_NAME_BYTES], service[CATALOG_NAME_BYTES];
	char name[CATALOG_NAME_BYTES];        /* the program, or what tells it apart from others of it */
	const char *host, *session;           /* of its files; "" */
	const struct control_process *listed; /* NULL: of files alone */
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
void catalog_free(struct catalog *catalog);

/* Who waits for a look. ready() is called once, from catalog_want() or later. */
struct catalog_waiter {
	struct catalog_waiter *next, **link; /* link NULL: it does not wait */
	uint64_t not_before_ns;
	bool needs_files; /* of samplers; those that were given are looked for in any case */
	void (*ready)(struct catalog_waiter *waiter);
};

/* not_before_ns (monotonic): a look that began earlier will not do; 0: one of the last second will. */
void catalog_want(struct catalog *catalog, struct catalog_waiter *waiter, uint64_t not_before_ns);
void catalog_leave(struct catalog_waiter *waiter); /* ready() will not be called */

/* To be called about once a second: looks for the time lines' sake. */
void catalog_tend(struct catalog *catalog, uint64_t now_ns);

/* Where it looks: in files that were given, at what samplers list. */
bool catalog_has_files(const struct catalog *catalog);
bool catalog_has_samplers(const struct catalog *catalog);

/* All processes, the live ones first. Valid until the next look, as all of these are. */
const struct catalog_process *catalog_processes(const struct catalog *catalog, size_t *count);

/* By its pid or service, or because a route says neither. */
bool catalog_is_meant(const struct catalog_process *process, const struct route *route);

/* Those that a route means; those that have ended only where no live one is meant. A route without a choice
 * means the only one that is root's or our own user's, whatever others profile. Returns how many; at most
 * `room` are filled in. */
size_t catalog_choose(const struct catalog *catalog, const struct route *route,
    const struct catalog_process **chosen, size_t room);

/* NULL: there is no such file. */
const struct catalog_file *catalog_file(const struct catalog *catalog, uint64_t number);

/* What samplers say of themselves, each a list. */
const struct catalog_lists *catalog_lists(const struct catalog *catalog);

/* The spools of `heaptap push` of the user that the server runs as. */
const struct spool_list *catalog_spools(const struct catalog *catalog);

/* Of that process, as it is now; NULL: it is not there any more. */
const struct catalog_process *catalog_find(const struct catalog *catalog, const struct process_key *key);

#endif
