/* SPDX-License-Identifier: Apache-2.0 */
/* The protocol and the address of a server, from text such as pyroscope+https://HOST:PORT/PATH. Pure. */
#ifndef PUSH_URL_H
#define PUSH_URL_H

#include <stdbool.h>
#include <stddef.h>

enum url_protocol { URL_PYROSCOPE, URL_PARCA, URL_OTLP };

/* What a URL may be, for messages. */
#define URL_ALLOWED "pyroscope+http(s)://HOST[:PORT][/PATH], parca+http(s)://... or otlp+http(s)://..."

enum { URL_BYTES = 1024, URL_NAME_BYTES = 128 /* SPOOL_NAME_TARGET_BYTES */ };

struct url {
	enum url_protocol protocol;
	bool tls;
	char address[URL_BYTES];   /* "https://host:4040/path", without a slash at the end */
	char name[URL_NAME_BYTES]; /* "pyroscope-host-4040": names the spool where the user named none */
};

/* 0, or -EINVAL with one line in error. */
int url_parse(const char *text, struct url *url, char *error, size_t error_bytes);

/* Can anybody between us and the server read what is sent? Not with TLS, and not where the host is written as
 * this machine: localhost, 127.x.x.x, [::1]. */
bool url_is_readable_by_others(const struct url *url);

/* "Pyroscope" */
const char *url_protocol_title(enum url_protocol protocol);

#endif
