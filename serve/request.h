/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One request of a client, from its first line to the end of its reply.
 *
 *     state     from                             to
 *     NEW       the first line is there          its headers are there: BODY, or ANSWERED with a refusal
 *     BODY      the headers are accepted         the body is whole: WORKING; too large: ANSWERED
 *     WORKING   endpoint_begin() is called       request_finish(): ANSWERED; the client hangs up: GONE
 *     ANSWERED  the reply is made                libmicrohttpd has sent it: request_free()
 *
 * No function of a WORKING request waits. Each step that takes time ends with a call of the next function:
 *
 *     endpoint_begin() -> catalog_want() -> the endpoint's answer() -> task -> request_finish()
 *
 * A task makes an answer of profiles: it fetches them, several at a time and from several places, and makes
 * the reply of them in the thread of jobs.h.
 *
 *     request_new_task -> task_fetch -> fetched() -> request_make_reply -> make(), in that thread -> made()
 *
 * An answer to `seconds=` calls task_fetch() twice: for the profiles before the wait, and for those after it.
 */
#ifndef SERVE_REQUEST_H
#define SERVE_REQUEST_H

#include "serve/catalog.h"
#include "serve/client.h"
#include "serve/jobs.h"
#include "serve/reply.h"
#include "serve/snapshots.h"

enum { REQUEST_BODY_BYTES = 64 << 10, REQUEST_PROCESSES_MAX = 256 };

enum { SERVER_WAITS_MAX = 8 /* requests that wait for `seconds` at once */ };

/* What all requests of the process share. */
struct server {
	struct broker_client *broker;
	struct jobs *jobs;
	struct snapshots *snapshots;
	struct catalog *catalog;
	struct delta_clients *delta_clients;
	struct counters *counters;
	struct token token;
	struct request *waiting[SERVER_WAITS_MAX]; /* for their `seconds` to pass; the oldest first */
	unsigned int waits;                        /* entries of `waiting` in use */
	uint64_t cut_off;                          /* connections that were closed to make room for others */
	uint64_t requests;                         /* all that had a whole head */
	uint64_t refused;                          /* of these: by client_refusal(), or beyond a limit */
};

/* What the table of endpoints says of one address: see endpoint_list.h. */
struct endpoint {
	const char *path;
	enum { ENDPOINT_ALONE, ENDPOINT_PROCESS } reach;
	const char *methods;
	enum { ENDPOINT_OPEN, ENDPOINT_READ, ENDPOINT_TOKEN } access;
	enum { ENDPOINT_NOTHING, ENDPOINT_PROCESSES, ENDPOINT_FILES } needs;
	enum { ENDPOINT_LINE, ENDPOINT_JSON } errors;
	const char *parameters;
	void (*answer)(struct request *request);
};

struct request {
	enum { REQUEST_NEW, REQUEST_BODY, REQUEST_WORKING, REQUEST_ANSWERED, REQUEST_GONE } state;
	struct server *server;
	int error; /* of reading the first line: 0, -EINVAL or -ENOMEM; if it is not 0, `route` is empty */
	struct route route;
	const struct endpoint *endpoint;
	struct client client;
	bool is_post, has_token; /* has_token: the server has a token, and the client has shown it */
	char *body;              /* NUL-terminated; NULL if the request has none */
	size_t body_bytes;
	struct reply reply;
	size_t sending_bytes;                      /* the reply's part of the bytes that are being sent */
	void (*finished)(struct request *request); /* called when the request becomes ANSWERED */
	void *context;                             /* for finished() */

	/* What a WORKING request waits for. request_stop() ends all of these waits. */
	struct catalog_waiter waiter;
	bool looked_again;  /* the first lists had no such process, so the catalog has looked once more */
	uint64_t broker_id; /* of the question to the broker; 0: no question is open */
	uint64_t wake_ns;   /* when to call wake(); 0: never */
	void (*wake)(struct request *request);
	struct task *task;
};

/* target: of the first line. Returns NULL if there is no memory. */
struct request *request_new(struct server *server, const char *target);
void request_free(struct request *request);

/* Ends everything that the request waits for. */
void request_stop(struct request *request);

/* Call this when request->reply is made. */
void request_finish(struct request *request);

/* Makes a reply with that status and text, as a line or as JSON, as the endpoint's clients expect.
 * request_refuse() also finishes the request. */
void request_set_refusal(struct request *request, unsigned int status, const char *text);
void request_refuse(struct request *request, unsigned int status, const char *text);

/* The last part of its endpoint's path: "heap" of "/debug/pprof/heap". */
const char *request_name(const struct request *request);

/* The value of a parameter; NULL if the parameter is missing or empty. */
const char *request_parameter(const struct request *request, const char *name);

/* ---- endpoint.c: finds the endpoint of a request in the table (endpoint_list.h), and lets it answer */

/* Never NULL: a path that leads nowhere has an endpoint that says so. */
const struct endpoint *endpoint_find(const struct route *route);

/* All rows of the table, for tests. */
const struct endpoint *endpoint_all(size_t *count);

/* The description of /api/v1 for programs and their generators: openapi.json of this folder (OpenAPI 3.0). */
const char *endpoint_openapi(void);

/* Asks the broker for what the request's endpoint needs, and then calls its answer(). request->finished() is
 * called once, from here or later. */
void endpoint_begin(struct request *request);

/* ---- its task */

enum { TASK_WHY_BYTES = 256, TASK_ID_BYTES = 64 };

#define TASK_BYTES_MAX ((uint64_t)512 << 20) /* of all profiles of a task */

/* A profile that a task fetches. */
struct task_item {
	enum task_item_kind {
		TASK_NOW,  /* the heap of `key` as it is now */
		TASK_CPU,  /* where `key` spends CPU time, for duration_ms */
		TASK_FILE, /* the file of that number */
		TASK_READY /* `profile` is there already */
	} kind;
	struct process_key key;
	uint64_t file;
	uint32_t duration_ms;
	struct blob *profile; /* held by the item; NULL until it is fetched, or if there is an error */
	int error;
	char why[TASK_WHY_BYTES];

	/* Set and read by the answers of /api/v1: see api_facts.h. */
	size_t column, owner;
	bool ended;
	char id[TASK_ID_BYTES];

	/* request.c's own */
	struct task *task;
	struct snapshots_waiter waiter;
	uint64_t broker_id;
	bool pending;
};

struct task {
	struct job job;
	struct request *request; /* NULL: nobody waits any more */
	struct task_item *items; /* owned */
	size_t count;            /* of the items in use: the first ones */
	struct reply reply;
	bool has_gzip; /* the client takes Content-Encoding: gzip */

	/* In the thread of jobs: makes `reply` of the items and the task's own data, and touches nothing
	 * else. */
	void (*make)(struct task *task);
	void (*free_data)(struct task *task); /* frees the task's own data; NULL: there is none */

	/* Called in the web process' thread, while there is a request.
	 * fetched(): each item has a profile or an error.
	 * made(): the reply is made. NULL: nothing to do then. */
	void (*fetched)(struct task *task);
	void (*made)(struct task *task);

	uint64_t not_before_ns, bytes;
	size_t pending;
	bool is_submitted;
};

/* Makes a task, which the request owns: `bytes` bytes that begin with a struct task, with room for that many
 * items. NULL: there was no memory, and the request was refused. */
void *request_new_task(struct request *request, size_t bytes, size_t room);

/* Lets the task make the reply of its items, which have all been fetched. The task ends with that. */
void request_make_reply(struct request *request);

/* Fetches the items from `first` on. not_before_ns is for TASK_NOW, as snapshots_want() takes it. fetched()
 * is called once, from here or later. If CPU time of one process cannot be sampled now, fetched() is called
 * from here and all other fetching stops. */
void task_fetch(struct task *task, size_t first, uint64_t not_before_ns);

/* The first item that failed; NULL if none did. */
const struct task_item *task_failure(const struct task *task);

/* The first item that failed although its process and its file are there. If all have gone, the first item.
 * NULL: the rest can be added up. */
const struct task_item *task_failure_of_sum(const struct task *task);

/* The HTTP status for a failure. */
unsigned int task_failure_status(const struct task_item *failure);

#endif
