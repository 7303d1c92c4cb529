/* SPDX-License-Identifier: Apache-2.0 */
/* A protocol by which servers take profiles: it makes a request of a delivery, and judges the answer. */
#ifndef PUSH_PROTOCOL_H
#define PUSH_PROTOCOL_H

#include "push/answer.h"

#include <stddef.h>

struct delivery;
struct http_request;
struct target;

struct protocol {
	/* Fills in URL, headers and body. 0 or -errno; http_request_fini() is due in any case. */
	int (*request)(
	    const struct target *target, const struct delivery *delivery, struct http_request *request);
	/* The answer is whole. text (ANSWER_TEXT_BYTES) gets what the server said, unless it accepted. */
	enum answer_verdict (*judge)(const struct target *target, const struct answer *answer, char *text);
};

extern const struct protocol pyroscope_protocol, parca_protocol, otlp_protocol;

#endif
