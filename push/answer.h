/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a server answers, and the verdict on it. target_queue.c does what follows the verdict: sends the next
 * profile, tries again, or rejects this one. The caller adds the answer's pieces as they come. Each part is
 * bounded, and nothing in it is trusted. Pure.
 *
 * Headers of HTTP/1, headers of HTTP/2 and trailers all come as lines. An answer with more than
 * ANSWER_HEADER_BYTES of headers or ANSWER_BODY_BYTES of body is given up.
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
	bool request_sent; /* all of it, so the server may have the profile, even if no answer came */
};

void answer_init(struct answer *answer);

/* One header line as curl hands it out, with or without its end of line. False: too much. */
bool answer_header(struct answer *answer, const char *line, size_t length);

/* A piece of the body. False: too much. */
bool answer_body(struct answer *answer, const void *bytes, size_t length);

/* Replaces the secret by stars in all that is printed of the answer, since a server may repeat what it was
 * sent. Does nothing for a secret of fewer than ANSWER_SECRET_BYTES. */
void answer_hide(struct answer *answer, const char *secret);

/* Does the Content-Type begin so? */
bool answer_is_type(const struct answer *answer, const char *type);

/* The only message of a gRPC answer, not compressed. 0 with its place in the body, or -EBADMSG if the body is
 * anything else. */
int answer_grpc_message(const struct answer *answer, const uint8_t **message, size_t *length);

/* Are the bytes well-formed protobuf, with whatever fields? */
bool answer_is_protobuf(const uint8_t *bytes, size_t length);

/* What the server said, for one line of a log: "400 Bad: ...". text has ANSWER_TEXT_BYTES. */
void answer_text(const struct answer *answer, char *text);

/*
 * ---- what to do after an answer, and when to try again
 *
 * The table is that of Grafana Alloy's pyroscope.write. HTTP's 408, 429 and 5xx, and the codes of gRPC and
 * Connect that may pass, are tried again: after 500 ms, then after twice as long each time, 5 minutes at
 * most, with a tenth of jitter, and never sooner than the server asked for (Retry-After). Any other answer is
 * final, with two exceptions. "cancelled" (Pyroscope's 499) comes from a server that ends: the client that
 * reads it has not gone away. 401, 403 and a proxy's 407 are no fault of the profile: the user renews a token
 * in its file, and each profile waits a day for that.
 */

#define ANSWER_RETRY_FIRST_NS  (UINT64_C(500) * 1000000)
#define ANSWER_RETRY_MOST_NS   (UINT64_C(300) * 1000000000)
#define ANSWER_RETRY_ASKED_MAX (UINT64_C(3600) * 1000000000) /* a server may not ask for more */

enum answer_verdict {
	ANSWER_ACCEPTED,
	ANSWER_LATER,      /* the same request may succeed later */
	ANSWER_DENIED,     /* the request may succeed with another token */
	ANSWER_REFUSED,    /* the request will never succeed */
	ANSWER_OTHER_PATH, /* the server may take it at its other path */
};

/* For a status that is not the protocol's success. */
enum answer_verdict answer_judge_http(int status);
enum answer_verdict answer_judge_grpc(int status);

/* Nanoseconds until the next attempt after `failures` (1 and more) in a row. random: any number. */
uint64_t answer_retry_delay_ns(unsigned int failures, uint64_t random, uint64_t asked_ns);

/* "120" or an HTTP date (RFC 9110, 10.2.3), as nanoseconds from now; 0 for anything else. */
uint64_t answer_retry_after_ns(const char *value, int64_t now_unix_ns);

#endif
