/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a server answers: fed piece by piece as it comes, bounded, and trusted in nothing. Pure.
 *
 * Header lines of HTTP/1, HTTP/2 and trailers come alike. An answer with more than ANSWER_HEADER_BYTES of
 * headers or ANSWER_BODY_BYTES of body is given up.
 */
#ifndef PUSH_ANSWER_H
#define PUSH_ANSWER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
	ANSWER_HEADER_BYTES = 64 << 10,
	ANSWER_BODY_BYTES = 1 << 20,
	ANSWER_KEPT_BYTES = 4096, /* of the body */
	ANSWER_TEXT_BYTES = 400,
	ANSWER_SECRET_BYTES = 4,
	ANSWER_NO_GRPC_STATUS = -1,
};

struct answer {
	int http_status; /* 0: none came */
	char content_type[128], retry_after[64], location[512];
	int grpc_status; /* ANSWER_NO_GRPC_STATUS: none came */
	char grpc_message[256];
	uint8_t body[ANSWER_KEPT_BYTES];
	size_t body_kept, body_bytes, header_bytes;
	bool too_large;
	bool request_sent; /* whole: whatever came of it, the server may have it */
};

void answer_init(struct answer *answer);

/* One header line as curl hands it out, with or without its end of line. False: too much. */
bool answer_header(struct answer *answer, const char *line, size_t length);

/* A piece of the body. False: too much. */
bool answer_body(struct answer *answer, const void *bytes, size_t length);

/* Takes a secret out of what is printed of the answer: a server may repeat what it was sent. One of fewer
 * than ANSWER_SECRET_BYTES is none. */
void answer_hide(struct answer *answer, const char *secret);

/* Does the Content-Type begin so? */
bool answer_is_type(const struct answer *answer, const char *type);

/* The body of a gRPC answer: its one message, which is not compressed. 0 with the part of the body;
 * -EBADMSG. */
int answer_grpc_message(const struct answer *answer, const uint8_t **message, size_t *length);

/* Is the body, all of which was kept, well-formed protobuf? Unknown fields are. */
bool answer_is_protobuf(const uint8_t *bytes, size_t length);

/* What the server said, for one line of a log: "400 Bad: ...". text has ANSWER_TEXT_BYTES. */
void answer_text(const struct answer *answer, char *text);

#endif
