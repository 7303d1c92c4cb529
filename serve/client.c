/* SPDX-License-Identifier: Apache-2.0 */
#include "serve/client.h"

#include "pprof/codec/file.h"
#include "sampler/core/control_peer.h"

#include <arpa/inet.h>
#include <errno.h>
#include <microhttpd.h>
#include <netinet/in.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>

enum { HOST_BYTES = 256 };

static const char *header(const struct client *client, const char *name)
{
	return MHD_lookup_connection_value(client->mhd, MHD_HEADER_KIND, name);
}

/* ---- Host */

/* "[::1]:80" -> "::1", "name:80" -> "name". False: the header has neither form. */
static bool take_name(const char *host, char name[HOST_BYTES], bool *bracketed)
{
	const char *end = host + strcspn(host, ":");

	*bracketed = host[0] == '[';
	if (*bracketed) {
		end = strchr(++host, ']');
		if (!end || (end[1] && end[1] != ':'))
			return false;
	}
	const char *port = end + (*bracketed ? 1 : 0);
	if (end == host || end - host >= HOST_BYTES ||
	    (*port && port[1 + strspn(port + 1, "0123456789")] != '\0'))
		return false;
	snprintf(name, HOST_BYTES, "%.*s", (int)(end - host), host);
	return true;
}

bool client_host_is_local(const char *host, const char *own_name)
{
	static const char localhost[] = ".localhost";
	char name[HOST_BYTES];
	struct in6_addr v6;
	struct in_addr v4;
	bool bracketed;
	size_t length;

	if (!host)
		return true;
	if (!take_name(host, name, &bracketed))
		return false;
	/* 0.0.0.0 and [::] lead to this machine too, but a browser does not say there which site's page asks
	 * (Sec-Fetch-Site). */
	if (bracketed)
		return inet_pton(AF_INET6, name, &v6) == 1 && !IN6_IS_ADDR_UNSPECIFIED(&v6) &&
		    !IN6_IS_ADDR_V4MAPPED(&v6);
	if (inet_pton(AF_INET, name, &v4) == 1)
		return v4.s_addr != htonl(INADDR_ANY);
	length = strlen(name);
	/* A name without a dot is nobody's on the internet. */
	return strcasecmp(name, "localhost") == 0 ||
	    (length > strlen(localhost) && strcasecmp(name + length - strlen(localhost), localhost) == 0) ||
	    (own_name && *own_name && !strchr(own_name, '.') && strcasecmp(name, own_name) == 0);
}

static const char *host_of(const struct client *client)
{
	return client->target_host ? client->target_host : header(client, "Host");
}

/* ---- requests that two readers may take for different ones */

/* A token of RFC 9110, 5.6.2. */
bool client_is_header_name(const char *name)
{
	static const char letters[] =
	    "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789!#$%&'*+-.^_`|~";

	return *name && !name[strspn(name, letters)];
}

bool client_is_header_value(const char *value)
{
	for (; *value; value++)
		if (((unsigned char)*value < ' ' && *value != '\t') || *value == 0x7f)
			return false;
	return true;
}

struct head {
	unsigned int hosts, lengths, codings;
	bool is_wrong;
};

static enum MHD_Result read_header(
    void *context, enum MHD_ValueKind kind, const char *name, const char *value)
{
	struct head *head = context;

	(void)kind;
	head->is_wrong =
	    head->is_wrong || !client_is_header_name(name) || !client_is_header_value(value ? value : "");
	head->hosts += strcasecmp(name, "Host") == 0;
	head->lengths += strcasecmp(name, "Content-Length") == 0;
	head->codings += strcasecmp(name, "Transfer-Encoding") == 0;
	return MHD_YES;
}

/*
 * Refuses a request of which two readers may not agree where it ends, or to whom it is (RFC 9112, 5 and 6.3).
 * Refuses each Transfer-Encoding: libmicrohttpd 0.9.75 takes all of a processor for a chunk whose first line
 * is longer than its buffer, until the connection is cut off.
 *
 * Returns 0, or a status with one line in *why.
 */
static unsigned int judge_head(const struct client *client, const char **why)
{
	struct head head = {0};

	MHD_get_connection_values(client->mhd, MHD_HEADER_KIND, read_header, &head);
	*why = head.hosts > 1                 ? "a request has one Host"
	    : head.lengths + head.codings > 1 ? "a request has one Content-Length, and no Transfer-Encoding"
	    : head.is_wrong                   ? "a header has a character that no header may have"
	                                      : NULL;
	if (*why)
		return 400;
	*why = "Transfer-Encoding is not taken: send a Content-Length";
	return head.codings ? 411 : 0;
}

/* ---- who may ask */

/*
 * A page of another site may have a link to our own page, as a person may click on any link. It may make the
 * browser ask for nothing else: it could not read the answer, and would use up time and waits. Another port
 * of localhost is another user's server, and the same site to a browser.
 */
bool client_is_foreign_page(const char *site, const char *mode, const char *into, bool is_open)
{
	const bool is_foreign = site && strcmp(site, "none") != 0 && strcmp(site, "same-origin") != 0;
	const bool is_link = mode && into && strcmp(mode, "navigate") == 0 && strcmp(into, "document") == 0;

	return is_foreign && !(is_open && is_link);
}

unsigned int client_refusal(
    const struct client *client, const struct token *token, bool is_open, bool *has_token, const char **why)
{
	const bool needs_token = token->text[0] != '\0';
	const unsigned int status = judge_head(client, why);

	*has_token = false;
	if (status)
		return status;
	*has_token = needs_token && client_token_is_shown(token, header(client, "Authorization"));
	if (*has_token)
		return 0;
	/* A foreign page has no token, and cannot reach a unix socket. */
	*why = "this server answers for addresses and localhost only, not for the name in Host";
	if (!needs_token && !client->address->is_unix &&
	    !client_host_is_local(host_of(client), client->own_name))
		return 403;
	*why = "this server answers no page of another site: type the address, or begin at /";
	if (!needs_token &&
	    client_is_foreign_page(header(client, "Sec-Fetch-Site"), header(client, "Sec-Fetch-Mode"),
	        header(client, "Sec-Fetch-Dest"), is_open))
		return 403;
	*why = "a token is needed: Authorization: Bearer TOKEN";
	return needs_token && !is_open ? 401 : 0;
}

/* ---- what else the headers say */

bool client_takes_gzip(const struct client *client)
{
	const char *encoding = header(client, "Accept-Encoding");

	return encoding && strstr(encoding, "gzip");
}

void client_name(
    const struct client *client, const struct parameters *parameters, char name[CLIENT_NAME_BYTES])
{
	const char *given = parameters_get(parameters, "client");
	const char *agent = header(client, "User-Agent");
	const union MHD_ConnectionInfo *info =
	    MHD_get_connection_info(client->mhd, MHD_CONNECTION_INFO_CLIENT_ADDRESS);
	char host[INET6_ADDRSTRLEN] = "local";

	if (given && *given) {
		snprintf(name, CLIENT_NAME_BYTES, "client=%.200s", given);
		return;
	}
	if (info && info->client_addr->sa_family == AF_INET)
		inet_ntop(
		    AF_INET, &((const struct sockaddr_in *)info->client_addr)->sin_addr, host, sizeof(host));
	else if (info && info->client_addr->sa_family == AF_INET6)
		inet_ntop(AF_INET6, &((const struct sockaddr_in6 *)info->client_addr)->sin6_addr, host,
		    sizeof(host));
	snprintf(name, CLIENT_NAME_BYTES, "%s %.180s", host, agent ? agent : "");
}

void client_server_address(const struct client *client, char address[CLIENT_ADDRESS_BYTES])
{
	static const char good[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789.:-_[]";
	const char *host = host_of(client);
	char text[LISTEN_ADDRESS_BYTES];
	struct listen_address reached;

	if (client->address->is_unix || listen_address_of(&reached, client->fd))
		snprintf(text, sizeof(text), "%s", client->address_text);
	else
		listen_address_text(&reached, text);
	if (host && *host && strlen(host) < CLIENT_ADDRESS_BYTES && !host[strspn(host, good)])
		snprintf(text, sizeof(text), "%s", host);
	snprintf(address, CLIENT_ADDRESS_BYTES, "%.127s", text);
}

/* ---- the token */

enum { FILE_BYTES_MAX = 4096 };

/* token68 of RFC 7235 and a little more: what fits into a header, without spaces. */
int client_token_parse(struct token *token, const char *text, size_t length)
{
	size_t count = 0;

	token->text[0] = '\0';
	while (count < length && text[count] > ' ' && text[count] < 0x7f)
		count++;
	for (size_t rest = count; rest < length; rest++)
		if (!strchr(" \t\r\n", text[rest]) || !text[rest])
			return -EINVAL;
	if (count < TOKEN_BYTES_MIN || count > TOKEN_BYTES_MAX)
		return -EINVAL;
	memcpy(token->text, text, count);
	token->text[count] = '\0';
	return 0;
}

int client_token_read(struct token *token, const char *path, char *error, size_t error_bytes)
{
	struct stat status;
	uint8_t *bytes;
	size_t length;
	int err = stat(path, &status) ? -errno : 0;

	if (!err && (status.st_mode & 07)) {
		snprintf(error, error_bytes,
		    "--token-file %s: everybody may read or write it; chmod o= makes it a secret", path);
		return -EPERM;
	}
	if (!err)
		err = file_read(path, FILE_BYTES_MAX, &bytes, &length);
	if (err) {
		snprintf(error, error_bytes, "--token-file %s: %s", path, file_read_error(err));
		return err;
	}
	err = client_token_parse(token, (const char *)bytes, length);
	explicit_bzero(bytes, length);
	free(bytes);
	if (err)
		snprintf(error, error_bytes,
		    "--token-file %s: a token is one line of %d to %d letters, digits and signs; for example "
		    "of: openssl rand -hex 32",
		    path, TOKEN_BYTES_MIN, TOKEN_BYTES_MAX);
	return err;
}

bool client_token_is_shown(const struct token *token, const char *authorization)
{
	const char *shown = authorization;
	size_t wanted = strlen(token->text), length;
	unsigned int difference;

	if (!wanted)
		return true;
	if (!shown || strncasecmp(shown, "Bearer", 6) != 0 || shown[6] != ' ')
		return false;
	shown += 6 + strspn(shown + 6, " ");
	length = strcspn(shown, " ");
	difference = shown[length] != '\0' || length != wanted;
	for (size_t i = 0; i < length; i++)
		difference |= (unsigned char)(shown[i] ^ token->text[i % wanted]);
	return difference == 0;
}

/* ---- the connections at one address */

struct connection_set_client {
	struct client_key name;
	size_t count;
};

static struct client_key name_of(const struct sockaddr *address, int fd)
{
	struct client_key name = {.family = address ? address->sa_family : AF_UNIX};

	if (name.family == AF_INET) {
		name.number = ((const struct sockaddr_in *)address)->sin_addr.s_addr;
	} else if (name.family == AF_INET6) {
		const struct in6_addr *v6 = &((const struct sockaddr_in6 *)address)->sin6_addr;

		if (IN6_IS_ADDR_V4MAPPED(v6)) {
			name.family = AF_INET;
			name.number = v6->s6_addr32[3];
		} else {
			memcpy(&name.number, v6->s6_addr, sizeof(name.number));
		}
	} else {
		name.number = control_peer_user(fd);
	}
	return name;
}

static struct connection_set_client *client_of(
    const struct connection_set *set, const struct client_key *name)
{
	struct connection_set_client *client;

	for (const struct connection_set_member *at = set->first; at; at = at->next)
		if (at->client->name.family == name->family && at->client->name.number == name->number)
			return at->client;
	client = calloc(1, sizeof(*client));
	if (client)
		client->name = *name;
	return client;
}

int connection_set_add(struct connection_set *set, struct connection_set_member *member,
    const struct sockaddr *address, int fd, uint64_t now_ns)
{
	const struct client_key name = name_of(address, fd);
	struct connection_set_client *client = client_of(set, &name);

	if (!client)
		return -ENOMEM;
	client->count++;
	*member = (struct connection_set_member){.next = set->first,
	    .link = &set->first,
	    .client = client,
	    .name = name,
	    .state = CONNECTION_SET_READING,
	    .since_ns = now_ns};
	if (member->next)
		member->next->link = &member->next;
	set->first = member;
	set->count++;
	return 0;
}

void connection_set_remove(struct connection_set *set, struct connection_set_member *member)
{
	if (!member->link)
		return;
	*member->link = member->next;
	if (member->next)
		member->next->link = member->link;
	member->link = NULL;
	set->count--;
	if (--member->client->count == 0)
		free(member->client);
}

struct connection_set_member *connection_set_choose(
    const struct connection_set *set, const struct connection_set_member *newest)
{
	struct connection_set_member *oldest[3] = {NULL};
	size_t most = 0, reading = 0;

	for (struct connection_set_member *at = set->first; at; at = at->next)
		most = at->client->count > most ? at->client->count : most;
	for (struct connection_set_member *at = set->first; at; at = at->next) {
		struct connection_set_member **of_state = &oldest[at->state];

		if (at == newest || at->client->count < most)
			continue;
		reading += at->state == CONNECTION_SET_READING;
		if (!*of_state || at->since_ns < (*of_state)->since_ns)
			*of_state = at;
	}
	if (reading < CONNECTION_SET_READING_MIN && oldest[CONNECTION_SET_SENDING])
		return oldest[CONNECTION_SET_SENDING];
	if (reading < CONNECTION_SET_READING_MIN && oldest[CONNECTION_SET_WORKING])
		return oldest[CONNECTION_SET_WORKING];
	return oldest[CONNECTION_SET_READING];
}
