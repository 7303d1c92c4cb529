/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One request, from its first line to its reply. Nothing here waits: whatever takes time comes back by a
 * call,
 * and finished() says that `reply` is there.
 *
 *     exchange_new -> exchange_route_begin -> catalog -> profiles -> (seconds -> profiles) -> job ->
 * finished()
 */
#ifndef SERVE_EXCHANGE_H
#define SERVE_EXCHANGE_H

#include "serve/connection_set.h"
#include "serve/debug_plan.h"
#include "serve/fetch.h"
#include "serve/server.h"

enum { EXCHANGE_BODY_BYTES = 64 << 10, EXCHANGE_PROCESSES_MAX = 256 };

struct exchange {
	struct server *server;
	struct route route;
	bool post, has_gzip; /* POST; the client takes Content-Encoding: gzip */
	bool trusted;        /* it has shown a token, and there is one */
	char *body;          /* of POST, NUL-terminated; NULL: none */
	size_t body_bytes;
	struct client_key client;              /* whose share of the waits it takes */
	char caller[DELTA_CLIENTS_NAME_BYTES]; /* for delta_heap */
	char address[128];                     /* at which it reached us, for /sd: "127.0.0.1:7337" */
	struct reply reply;
	void (*finished)(struct exchange *exchange);
	void *context;

	/* the exchange's own */
	struct exchange_work *work; /* a job that runs: it has what it needs for itself */
	struct catalog_waiter waiter;
	bool looked_again; /* because there was no such process a moment ago */
	struct debug_plan plan;
	struct process_key keys[EXCHANGE_PROCESSES_MAX]; /* of the processes that it is about */
	uint64_t files[EXCHANGE_PROCESSES_MAX];          /* of those without a sampler: their newest file */
	size_t process_count;
	struct fetch first, last;
	uint64_t wake_ns;              /* the time of `seconds` is over; 0: none */
	uint64_t request;              /* to the broker */
	struct exchange_work *planned; /* a job that waits for its profiles */
};

/* NULL: no memory. target: as in the request's first line; *error: -EINVAL if it is none. */
struct exchange *exchange_new(struct server *server, const char *target, int *error);

/* Ends it, in whatever state; finished() is not called any more. */
void exchange_free(struct exchange *exchange);

/* For the parts of it: whatever is under way for it is stopped. */
void exchange_stop(struct exchange *exchange);

/* For the parts of it: the reply is made, or the catalog has nothing for it. */
void exchange_finish(struct exchange *exchange);

/* A job for it: run() makes `reply` of `work`'s own data; then exchange_finish() is called, if it is still
 * wanted. free_data() is called in any case. */
struct exchange_work {
	struct job job;
	struct exchange *exchange; /* NULL: nobody waits any more */
	struct reply reply;
	bool has_gzip;
	void (*run)(struct exchange_work *work);
	void (*done)(struct exchange *exchange, struct exchange_work *work); /* may be NULL */
	void (*free_data)(struct exchange_work *work);
};
void exchange_submit(struct exchange *exchange, struct exchange_work *work);

#endif
