/* SPDX-License-Identifier: Apache-2.0 */
/* An answer: status, headers, bytes. An endpoint makes it, and web_connection.c sends it. */
#ifndef SERVE_REPLY_H
#define SERVE_REPLY_H

#include <stddef.h>

struct blob;

enum { REPLY_HEADERS = 8 };

#define REPLY_TEXT    "text/plain; charset=utf-8"
#define REPLY_JSON    "application/json"
#define REPLY_PROFILE "application/octet-stream"

struct reply {
	unsigned int status; /* 0: none has been made */
	struct reply_header {
		const char *name; /* static */
		char *value;
	} headers[REPLY_HEADERS];
	size_t header_count;
	struct blob *body;
};

/* All of these replace what was there. If memory runs out, the answer is a 500 without a body. */
void reply_fini(struct reply *reply);

/* Sets a text of that content type. */
__attribute__((format(printf, 4, 5))) void reply_text(
    struct reply *reply, unsigned int status, const char *type, const char *format, ...);

/* Sets a body, and takes over the caller's hold on it. */
void reply_bytes(struct reply *reply, unsigned int status, const char *type, struct blob *body);

/* Sets one line, as Go's net/http/pprof reports an error. Its clients show the line to their users. */
void reply_go_error(struct reply *reply, unsigned int status, const char *text);

/* Sets {"error": text}. */
void reply_json_error(struct reply *reply, unsigned int status, const char *text);

/* Adds a header. `name` is static. */
__attribute__((format(printf, 3, 4))) void reply_header(
    struct reply *reply, const char *name, const char *format, ...);

#endif
