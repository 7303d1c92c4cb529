/* SPDX-License-Identifier: Apache-2.0 */
#include "serve/client.h"

#include "serve/exchange.h"
#include "serve/host_header.h"

#include <arpa/inet.h>
#include <microhttpd.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

static const char *header(const struct client *client, const char *name)
{
	return MHD_lookup_connection_value(client->mhd, MHD_HEADER_KIND, name);
}

/* Who asks, for delta_heap. */
static void name_caller(const struct client *from, struct exchange *exchange)
{
	const char *client = parameters_get(&exchange->route.parameters, "client");
	const char *agent = header(from, "User-Agent");
	const union MHD_ConnectionInfo *info =
	    MHD_get_connection_info(from->mhd, MHD_CONNECTION_INFO_CLIENT_ADDRESS);
	char host[INET6_ADDRSTRLEN] = "local";

	if (client && *client) {
		snprintf(exchange->caller, sizeof(exchange->caller), "client=%.200s", client);
		return;
	}
	if (info && info->client_addr->sa_family == AF_INET)
		inet_ntop(
		    AF_INET, &((const struct sockaddr_in *)info->client_addr)->sin_addr, host, sizeof(host));
	else if (info && info->client_addr->sa_family == AF_INET6)
		inet_ntop(AF_INET6, &((const struct sockaddr_in6 *)info->client_addr)->sin6_addr, host,
		    sizeof(host));
	snprintf(exchange->caller, sizeof(exchange->caller), "%s %.180s", host, agent ? agent : "");
}

/* Where clients reach us, for /sd: as this one has written it, or where it has come in. */
static void name_us(const struct client *client, struct exchange *exchange)
{
	static const char good[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789.:-_[]";
	const char *host = header(client, "Host");
	char text[LISTEN_ADDRESS_BYTES];
	struct listen_address address;

	if (client->address->is_unix || listen_address_of(&address, client->fd))
		snprintf(text, sizeof(text), "%s", client->address_text);
	else
		listen_address_text(&address, text);
	if (host && *host && strlen(host) < sizeof(exchange->address) && !host[strspn(host, good)])
		snprintf(text, sizeof(text), "%s", host);
	snprintf(exchange->address, sizeof(exchange->address), "%.127s", text);
}

void client_refuse(struct reply *reply, const struct route *route, unsigned int status, const char *text)
{
	if (route->kind == ROUTE_API)
		reply_json_error(reply, status, text);
	else
		reply_go_error(reply, status, text);
}

/* Does a page of another site ask, by somebody's browser? It may link to us, as anything may that a person
 * clicks on, but not load from here: it could not read that, but use up time and waits. */
static bool is_foreign_page(const struct client *client)
{
	const char *site = header(client, "Sec-Fetch-Site"), *mode = header(client, "Sec-Fetch-Mode"),
	           *into = header(client, "Sec-Fetch-Dest");

	return site && strcmp(site, "cross-site") == 0 &&
	    !(mode && into && strcmp(mode, "navigate") == 0 && strcmp(into, "document") == 0);
}

static enum MHD_Result count_host(void *context, enum MHD_ValueKind kind, const char *name, const char *value)
{
	(void)kind;
	(void)value;
	*(unsigned int *)context += strcasecmp(name, "Host") == 0;
	return MHD_YES;
}

/* Two readers of such a request may take it for one to different hosts. */
static bool has_hosts(const struct client *client)
{
	unsigned int count = 0;

	MHD_get_connection_values(client->mhd, MHD_HEADER_KIND, count_host, &count);
	return count > 1;
}

bool client_may_ask(const struct client *client, struct exchange *exchange, struct reply *reply)
{
	const struct token *token = &exchange->server->token;
	bool needs_token = token->text[0] != '\0';
	const char *host = header(client, "Host");

	if (has_hosts(client)) {
		client_refuse(reply, &exchange->route, 400, "a request has one Host");
		return false;
	}
	if (needs_token && token_is_shown(token, header(client, "Authorization"))) {
		exchange->trusted = true;
		return true;
	}
	/* A foreign page has no token, and a unix socket is out of its reach. */
	if (!needs_token && !client->address->is_unix && !host_header_is_local(host, client->own_name)) {
		client_refuse(reply, &exchange->route, 403,
		    "this server answers for addresses and localhost only, not for the name in Host");
		return false;
	}
	if (!needs_token && is_foreign_page(client)) {
		client_refuse(
		    reply, &exchange->route, 403, "this server does not answer pages of other sites");
		return false;
	}
	if (!needs_token || route_is_open(&exchange->route))
		return true;
	client_refuse(reply, &exchange->route, 401, "a token is needed: Authorization: Bearer TOKEN");
	reply_header(reply, "WWW-Authenticate", "Bearer realm=\"heaptap\"");
	return false;
}

void client_describe(const struct client *client, struct exchange *exchange)
{
	const char *encoding = header(client, "Accept-Encoding");

	exchange->has_gzip = encoding && strstr(encoding, "gzip");
	name_us(client, exchange);
	name_caller(client, exchange);
}
