/* SPDX-License-Identifier: Apache-2.0 */
/* The request to a target, by its protocol. */
#ifndef PUSH_REQUEST_H
#define PUSH_REQUEST_H

#include "push/protocol.h"

const struct protocol *request_protocol(const struct target *target);

/* Makes the whole request: what its protocol wants, and what all requests have. 0, or -errno with one line in
 * error. -EACCES: the token cannot be read now. -ENOMEM. Any other error is the fault of the profile. */
int request_make(const struct target *target, const struct delivery *delivery, struct http_request *request,
    char *error, size_t error_bytes);

/* Lets the protocol judge a whole answer. The text that is printed of the answer does not have the token in
 * it, even if the server repeated it. */
enum retry_verdict request_judge(
    const struct target *target, const struct http_request *request, struct answer *answer, char *text);

#endif
