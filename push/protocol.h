/* SPDX-License-Identifier: Apache-2.0 */
/* The protocols by which servers take profiles. Each makes a request of a delivery, and judges the answer. */
#ifndef PUSH_PROTOCOL_H
#define PUSH_PROTOCOL_H

#include "push/retry.h"

#include <stddef.h>

struct answer;
struct delivery;
struct http_request;
struct target;

struct protocol {
	/* Fills in URL, headers and body. 0 or -errno; http_request_fini() is due in any case. */
	int (*request)(
	    const struct target *target, const struct delivery *delivery, struct http_request *request);
	/* The answer is whole. text (ANSWER_TEXT_BYTES) gets what the server said, unless it accepted. */
	enum retry_verdict (*judge)(const struct target *target, const struct answer *answer, char *text);
};

extern const struct protocol pyroscope_protocol, parca_protocol, otlp_protocol;

const struct protocol *protocol_of(const struct target *target);

/* Makes a request with all its headers. 0, or -errno with one line in error. -EACCES: the token cannot be
 * read now. -ENOMEM: there is no memory. Any other error is the fault of the profile. */
int protocol_request(const struct target *target, const struct delivery *delivery,
    struct http_request *request, char *error, size_t error_bytes);

/* Judges a whole answer. The token is taken out of the text, even if the server repeated it. */
enum retry_verdict protocol_judge(
    const struct target *target, const struct http_request *request, struct answer *answer, char *text);

#endif
