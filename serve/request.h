/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One request of a client, from its first line to the end of its reply.
 *
 *     NEW --headers--> BODY --whole--> WORKING --request_finish()--> ANSWERED
 *      |  refused       |  too large      |  the client hangs up
 *      +--> ANSWERED    +--> ANSWERED     +--> GONE
 *
 * While a request is WORKING no call waits. What takes time comes back by a call:
 *
 *     endpoint_begin() -> the catalog's list -> answer() of the endpoint -> task -> request_finish()
 *
 * A task (task.h) fetches the profiles that the answer is made of, and makes the reply in a thread of its
 * own.
 */
#ifndef SERVE_REQUEST_H
#define SERVE_REQUEST_H

#include "serve/catalog.h"
#include "serve/client.h"
#include "serve/delta_clients.h"
#include "serve/reply.h"
#include "serve/task.h"

enum { REQUEST_BODY_BYTES = 64 << 10, REQUEST_PROCESSES_MAX = 256 };

enum { SERVER_WAITS_MAX = 8 /* requests that wait for `seconds` at once */ };

/* What all requests share. */
struct server {
	struct broker_client *broker;
	struct jobs *jobs;
	struct snapshots *snapshots;
	struct catalog *catalog;
	struct delta_clients *delta_clients;
	struct counters *counters;
	struct token token;
	struct request *waiting[SERVER_WAITS_MAX]; /* for `seconds`; the oldest first */
	unsigned int waits;                        /* the number of them */
	uint64_t cut_off;                          /* connections that were closed to make room for others */
	uint64_t requests, refused; /* refused: without the token, for a foreign page, beyond a limit */
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
	int error; /* of the first line: 0, -EINVAL or -ENOMEM; then there is no route */
	struct route route;
	const struct endpoint *endpoint;
	struct client client;
	bool is_post, has_token; /* has_token: the server has a token, and the client has shown it */
	char *body;              /* of a POST, NUL-terminated; NULL if there is none */
	size_t body_bytes;
	struct reply reply;
	size_t sending_bytes;                      /* of answers that are being sent, as far as it counts */
	void (*finished)(struct request *request); /* the request is ANSWERED */
	void *context;                             /* of finished() */

	/* What it waits for; request_stop() ends all of it. */
	struct catalog_waiter waiter;
	bool looked_again;  /* the first list had no such process, so the catalog was asked again */
	uint64_t broker_id; /* of its question to the broker; 0 if there is none */
	uint64_t wake_ns;   /* when wake() is due; 0 if it is not */
	void (*wake)(struct request *request);
	struct task *task;
};

/* target: as in the request's first line. NULL if there is no memory. */
struct request *request_new(struct server *server, const char *target);
void request_free(struct request *request);

/* Stops whatever the request waits for. */
void request_stop(struct request *request);

/* To be called when the reply is made. */
void request_finish(struct request *request);

/* Makes a reply that refuses, in the form that the endpoint's clients read. The second finishes too. */
void request_set_refusal(struct request *request, unsigned int status, const char *text);
void request_refuse(struct request *request, unsigned int status, const char *text);

/* The last part of its endpoint's path: "heap" of "/debug/pprof/heap". */
const char *request_name(const struct request *request);

/* The value of a parameter; NULL if it is not given, or empty. */
const char *request_parameter(const struct request *request, const char *name);

/* A task (task_new()) that the request has from now on. The `bytes` begin with a struct task. NULL: the
 * request was refused. */
void *request_new_task(struct request *request, size_t bytes, size_t room);

/* Has the task make the reply, when all its items are there. Then the task goes away. */
void request_make_reply(struct request *request);

#endif
