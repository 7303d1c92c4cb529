/* SPDX-License-Identifier: Apache-2.0 */
/* What a request's headers say of whoever sends it, and whether that one may ask. */
#ifndef SERVE_CLIENT_H
#define SERVE_CLIENT_H

#include "serve/listen_address.h"
#include "serve/reply.h"
#include "serve/route.h"

struct exchange;
struct MHD_Connection;

/* Borrows everything. */
struct client {
	struct MHD_Connection *mhd;
	const struct listen_address *address; /* that it has come to */
	const char *address_text;
	const char *own_name; /* of this machine */
	int fd;
};

/* By token, Host and, of browsers, where the page is from that asks. Notes in the exchange if it has shown
 * the token. False: `reply` says why not. */
bool client_may_ask(const struct client *client, struct exchange *exchange, struct reply *reply);

/* Notes in the exchange what the client takes, its name and ours. */
void client_describe(const struct client *client, struct exchange *exchange);

/* In the form that clients of that route read: JSON, or a line. */
void client_refuse(struct reply *reply, const struct route *route, unsigned int status, const char *text);

#endif
