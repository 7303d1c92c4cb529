/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a request's headers say of the client that sends it, and whether this client may ask. And the
 * connections of all clients.
 *
 * Against DNS rebinding: a foreign page can let its own name lead to 127.0.0.1, and then reads, in the
 * browser of somebody who looks at that page, what listens there. Such requests have the page's name in Host.
 * So a server without a token answers only for addresses, for localhost, and for names that mean this machine
 * to nobody else.
 */
#ifndef SERVE_CLIENT_H
#define SERVE_CLIENT_H

#include "serve/listen_address.h"
#include "serve/route.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>

struct MHD_Connection;

enum { TOKEN_BYTES_MIN = 16, TOKEN_BYTES_MAX = 512 };

/* Tells clients apart: by their address, or the user at the other end of a unix socket. */
struct client_key {
	uint64_t family, number;
};

/* What clients must show (RFC 6750, "Authorization: Bearer TOKEN"). */
struct token {
	char text[TOKEN_BYTES_MAX + 1]; /* "": none is needed */
};

/* Borrows everything. */
struct client {
	struct MHD_Connection *mhd;
	const char *target_host; /* struct route's: counts instead of the header Host; NULL: there is none */
	const struct listen_address *address; /* on which the client has reached us */
	const char *address_text;
	const char *own_name; /* of this machine */
	int fd;
	struct client_key key; /* the client takes part in limits under this key */
};

enum { CLIENT_NAME_BYTES = 256, CLIENT_ADDRESS_BYTES = 128 };

/*
 * May the client ask? Says no to a request that two readers may take for different ones: to two hosts, of
 * two lengths, with a name or a value that no header may have. Says no to a client without the token. Where
 * no token is needed, says no to a foreign host name, and to the browser of somebody who looks at a page of
 * another site.
 *
 * is_open: the answer holds no data, so no token is needed, and another site may have a link to it. Returns
 * 0, or the status of the refusal with one line in *why. *has_token: the server has a token, and the client
 * has shown it.
 */
unsigned int client_refusal(
    const struct client *client, const struct token *token, bool is_open, bool *has_token, const char **why);

/* Pure: may a header have that name? */
bool client_is_header_name(const char *name);

/* Pure: may a header have that value? */
bool client_is_header_value(const char *value);

/* Pure: is that host one for which a server without a token answers? host: as in the header Host; NULL if
 * there is none (HTTP/1.0). own_name: this machine's; NULL or "" if it has none. */
bool client_host_is_local(const char *host, const char *own_name);

/* Pure: does a page of another site ask, in somebody's browser? The first three are the headers
 * Sec-Fetch-Site, -Mode and -Dest; NULL if there is none. */
bool client_is_foreign_page(const char *site, const char *mode, const char *into, bool is_open);

/* Does the client take Content-Encoding: gzip? */
bool client_takes_gzip(const struct client *client);

/* The client's name for delta_heap: the parameter client=, or else its address and User-Agent. */
void client_name(
    const struct client *client, const struct parameters *parameters, char name[CLIENT_NAME_BYTES]);

/* The server's address for /sd, as the client has written it, or else on which it has reached us. */
void client_server_address(const struct client *client, char address[CLIENT_ADDRESS_BYTES]);

/* Reads the first line of a file that only its owner and group may read. 0, or -errno with one line
 * in error. */
int client_token_read(struct token *token, const char *path, char *error, size_t error_bytes);

/* Pure: the same, of the file's bytes. 0 or -EINVAL. */
int client_token_parse(struct token *token, const char *text, size_t length);

/* Pure: does the value of an Authorization header (NULL if there is none) show the token? The time that this
 * takes depends on the length of the value and on nothing else. */
bool client_token_is_shown(const struct token *token, const char *authorization);

/*
 * ---- the connections at one address that we listen on
 *
 * The set knows the client of each connection, and chooses the connection to close when there are too many.
 * So no client can keep others out, neither by many connections nor by slow ones.
 */

enum {
	/* If the client with most connections has fewer than this without a whole request, one of its other
	 * connections is closed instead. */
	CONNECTION_SET_READING_MIN = 32,
};

enum connection_set_state {
	CONNECTION_SET_READING, /* its client has not sent a whole request */
	CONNECTION_SET_SENDING, /* its client reads an answer */
	CONNECTION_SET_WORKING, /* its client waits for an answer */
};

struct connection_set_member {
	struct connection_set_member *next, **link; /* link NULL: in no set */
	struct connection_set_client *client;
	struct client_key name; /* of the client */
	enum connection_set_state state;
	uint64_t since_ns; /* in that state */
};

struct connection_set {
	struct connection_set_member *first;
	size_t count;
};

/* Adds a connection, in the state READING. address: the client's. If it is NULL or that of a unix socket, the
 * user at the other end of fd is the client. For IPv6 the first 64 bits of the address are the client. 0 or
 * -ENOMEM. */
int connection_set_add(struct connection_set *set, struct connection_set_member *member,
    const struct sockaddr *address, int fd, uint64_t now_ns);

/* Does nothing if the member is in no set. */
void connection_set_remove(struct connection_set *set, struct connection_set_member *member);

/*
 * Chooses the connection to close, of the client with most connections (of all such clients, if several have
 * as many). It is the connection that has been without a whole request for longest. If only few are without
 * one, it is the connection that has taken longest to read its answer, or else to wait for it. `newest` is
 * never chosen. NULL: there is no other.
 */
struct connection_set_member *connection_set_choose(
    const struct connection_set *set, const struct connection_set_member *newest);

#endif
