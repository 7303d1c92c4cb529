/* SPDX-License-Identifier: Apache-2.0 */
#include "serve/host_header.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

enum { NAME_BYTES = 256 };

/* "[::1]:80" -> "::1", "name:80" -> "name". False: it is neither. */
static bool take_name(const char *host, char name[NAME_BYTES], bool *bracketed)
{
	const char *end = host + strcspn(host, ":");

	*bracketed = host[0] == '[';
	if (*bracketed) {
		end = strchr(++host, ']');
		if (!end || (end[1] && end[1] != ':'))
			return false;
	}
	const char *port = end + (*bracketed ? 1 : 0);
	if (end == host || end - host >= NAME_BYTES ||
	    (*port && port[1 + strspn(port + 1, "0123456789")] != '\0'))
		return false;
	snprintf(name, NAME_BYTES, "%.*s", (int)(end - host), host);
	return true;
}

bool host_header_is_local(const char *host, const char *own_name)
{
	static const char localhost[] = ".localhost";
	char name[NAME_BYTES];
	struct in6_addr v6;
	struct in_addr v4;
	bool bracketed;
	size_t length;

	if (!host)
		return true;
	if (!take_name(host, name, &bracketed))
		return false;
	if (bracketed)
		return inet_pton(AF_INET6, name, &v6) == 1;
	length = strlen(name);
	/* A name without a dot is nobody's on the internet. */
	return inet_pton(AF_INET, name, &v4) == 1 || strcasecmp(name, "localhost") == 0 ||
	    (length > strlen(localhost) && strcasecmp(name + length - strlen(localhost), localhost) == 0) ||
	    (own_name && *own_name && !strchr(own_name, '.') && strcasecmp(name, own_name) == 0);
}
