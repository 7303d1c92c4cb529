/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a request's headers say of the client that sends it, and whether this client may ask.
 *
 * Against DNS rebinding: a foreign page can let its own name lead to 127.0.0.1, and then reads, in the
 * browser of somebody who looks at that page, what listens there. Such requests have the page's name in Host.
 * So a server without a token answers only for addresses, for localhost, and for names that mean this machine
 * to nobody else.
 */
#ifndef SERVE_CLIENT_H
#define SERVE_CLIENT_H

#include "serve/connection_set.h"
#include "serve/listen_address.h"
#include "serve/route.h"

#include <stdbool.h>
#include <stddef.h>

struct MHD_Connection;

enum { TOKEN_BYTES_MIN = 16, TOKEN_BYTES_MAX = 512 };

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

#endif
