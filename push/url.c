/* SPDX-License-Identifier: Apache-2.0 */
#include "push/url.h"

#include <arpa/inet.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

static const struct {
	const char *prefix;
	enum url_protocol protocol;
	bool tls;
	const char *port; /* if none is given, as part of the spool's name */
} schemes[] = {
    {"pyroscope+http://", URL_PYROSCOPE, false, "80"},
    {"pyroscope+https://", URL_PYROSCOPE, true, "443"},
    {"parca+http://", URL_PARCA, false, "80"},
    {"parca+https://", URL_PARCA, true, "443"},
    {"otlp+http://", URL_OTLP, false, "80"},
    {"otlp+https://", URL_OTLP, true, "443"},
};

bool url_is_readable_by_others(const struct url *url)
{
	const char *host = url->address + strlen("http://");
	const size_t length = strcspn(host, host[0] == '[' ? "]/" : ":/");
	char name[URL_BYTES];
	struct in_addr v4;

	snprintf(name, sizeof(name), "%.*s", (int)length, host);
	if (url->tls || strcasecmp(name, "localhost") == 0 || strcmp(name, "[::1") == 0)
		return false;
	return inet_pton(AF_INET, name, &v4) != 1 || (ntohl(v4.s_addr) >> 24) != 127;
}

const char *url_protocol_title(enum url_protocol protocol)
{
	static const char *const titles[] = {"Pyroscope", "Parca", "OTLP"};

	return titles[protocol];
}

static int fail(char *error, size_t error_bytes, const char *text, const char *why)
{
	snprintf(error, error_bytes, "'%s' %s; give " URL_ALLOWED, text, why);
	return -EINVAL;
}

/* Letters, digits, and what else may stand in host and path. Anything else must be percent-encoded; '?'
 * and '#' would end the path, and '@' would put a password where every user of the machine can read it. */
static bool is_plain(const char *text)
{
	for (; *text; text++) {
		bool letter = (*text >= 'a' && *text <= 'z') || (*text >= 'A' && *text <= 'Z');

		if (!letter && !(*text >= '0' && *text <= '9') && !strchr("-._~%/:[]!$&'()*+,;=", *text))
			return false;
	}
	return true;
}

/* The part of text that is the port: 1 to 65535; -EINVAL. "" if there is none. */
static int port_check(const char *port, size_t length)
{
	char digits[8];

	if (length < 2 || length > 6 || strspn(port + 1, "0123456789") < length - 1)
		return -EINVAL;
	memcpy(digits, port + 1, length - 1);
	digits[length - 1] = '\0';
	return atoi(digits) >= 1 && atoi(digits) <= 65535 ? 0 : -EINVAL;
}

/* "pyroscope-host-4040", of letters, digits, '.', '_' and '-' only. */
static void make_name(struct url *url, const char *authority, size_t length, bool has_port, const char *port)
{
	static const char *const words[] = {"pyroscope", "parca", "otlp"};

	snprintf(url->name, sizeof(url->name), "%s-%.*s%s%s", words[url->protocol], (int)length, authority,
	    has_port ? "" : "-", has_port ? "" : port);
	for (char *at = url->name; *at; at++)
		if (strchr(":[]%/!$&'()*+,;=~", *at))
			*at = '-';
}

int url_parse(const char *text, struct url *url, char *error, size_t error_bytes)
{
	size_t scheme = 0, prefix, length, host;
	const char *authority, *colon;

	while (scheme < sizeof(schemes) / sizeof(schemes[0]) &&
	    strncmp(text, schemes[scheme].prefix, strlen(schemes[scheme].prefix)) != 0)
		scheme++;
	if (strncmp(text, "datadog+", strlen("datadog+")) == 0) {
		snprintf(error, error_bytes,
		    "datadog+http:// is gone: use pyroscope+http(s)://, parca+http(s):// or otlp+http(s)://");
		return -EINVAL;
	}
	if (scheme == sizeof(schemes) / sizeof(schemes[0]))
		return fail(error, error_bytes, text, "is no address for profiles");
	prefix = strlen(schemes[scheme].prefix);
	authority = text + prefix;
	length = strcspn(authority, "/");
	if (memchr(authority, '@', length))
		return fail(error, error_bytes, schemes[scheme].prefix,
		    "... has a user or password in it (use --user and --token-file)");
	if (!is_plain(authority) || strlen(authority) > URL_BYTES - 16)
		return fail(error, error_bytes, text, "is too long or has characters that it must not have");
	colon = memrchr(authority, ':', length);
	if (*authority == '[') {
		const char *bracket = memchr(authority, ']', length);

		if (!bracket || bracket == authority + 1)
			return fail(error, error_bytes, text, "has no host");
		colon = bracket + 1 < authority + length ? bracket + 1 : NULL;
	}
	host = colon ? (size_t)(colon - authority) : length;
	if (!host || (*authority != '[' && memchr(authority, ':', host)))
		return fail(error, error_bytes, text, host ? "has two ports" : "has no host");
	if (colon && (*colon != ':' || port_check(colon, length - host)))
		return fail(error, error_bytes, text, "has no port of 1 to 65535");
	url->protocol = schemes[scheme].protocol;
	url->tls = schemes[scheme].tls;
	snprintf(url->address, sizeof(url->address), "http%s://%s", url->tls ? "s" : "", authority);
	for (size_t end = strlen(url->address); url->address[end - 1] == '/';)
		url->address[--end] = '\0';
	make_name(url, authority, length, colon != NULL, schemes[scheme].port);
	return 0;
}
