/* SPDX-License-Identifier: Apache-2.0 */
/*
 * HTTP requests by libcurl, several at once, without threads. The only file that includes curl's headers.
 *
 * An answer is bounded (answer.h), a request has a time limit for the whole of it, redirects are never
 * followed (a token must not go to another host), and nothing but HTTP is spoken.
 */
#ifndef PUSH_HTTP_H
#define PUSH_HTTP_H

#include "push/answer.h"

#include <poll.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { HTTP_HEADERS_MAX = 12, HTTP_HEADER_BYTES = 8192 + 64, HTTP_ERROR_BYTES = 256 };

struct http_request {
	char url[4096 + 3 * 2048];
	char *headers[HTTP_HEADERS_MAX]; /* "name: value"; each is freed with the request */
	size_t header_count;
	uint8_t *body; /* freed with the request */
	char *secret;  /* the token, to be hidden in what is printed, or NULL; freed with the request */
	size_t body_bytes;
	uint64_t timeout_ns;
	bool http2;          /* gRPC: HTTP/2 at once, without an upgrade */
	const char *ca_file; /* borrowed; NULL: the system's */
};

/* "name: value", copied. 0, -ENOMEM; -EINVAL if it has a control character, which would end the header. */
__attribute__((format(printf, 2, 3))) int http_request_header(
    struct http_request *request, const char *format, ...);
void http_request_fini(struct http_request *request);

struct http; /* all requests under way */
struct http_call;

/* NULL if libcurl cannot be used. */
struct http *http_new(void);
void http_free(struct http *http);

/* Starts a request. The request and the answer are borrowed until the call is over. NULL if there is no
 * memory. */
struct http_call *http_start(
    struct http *http, const struct http_request *request, struct answer *answer, void *owner);

/* Waits until a call is over, one of `fds` is ready, or the time is up. Returns whether a call is over; then
 * *owner is its owner, and error says why no whole answer came ("" if one came). */
bool http_wait(struct http *http, struct pollfd *fds, size_t fd_count, uint64_t timeout_ns, void **owner,
    char error[HTTP_ERROR_BYTES]);

/* Breaks a call off. */
void http_cancel(struct http *http, struct http_call *call);

/* Percent-encodes everything but letters, digits, '-', '.', '_' and '~'; cut. */
void http_escape(const char *text, char *escaped, size_t escaped_bytes);

#endif
