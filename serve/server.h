/* SPDX-License-Identifier: Apache-2.0 */
/* What all requests share. */
#ifndef SERVE_SERVER_H
#define SERVE_SERVER_H

#include "serve/catalog.h"
#include "serve/counters.h"
#include "serve/delta_clients.h"
#include "serve/jobs.h"
#include "serve/token.h"

enum { SERVER_WAITS_MAX = 8 /* requests that wait for `seconds` at once */ };

struct server {
	struct broker_client *broker;
	struct jobs *jobs;
	struct snapshots *snapshots;
	struct catalog *catalog;
	struct delta_clients *delta_clients;
	struct counters *counters;
	struct token token;
	struct exchange *waiting[SERVER_WAITS_MAX]; /* for `seconds` now, by when they began */
	unsigned int waits;                         /* how many those are */
	uint64_t cut_off;                           /* connections that gave way to others */
	uint64_t requests, refused; /* refused: without the token, of a foreign page, beyond a limit */
	int64_t since_unix_ns;
};

#endif
