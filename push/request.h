/* SPDX-License-Identifier: Apache-2.0 */
/* The request to a target, by its protocol. */
#ifndef PUSH_REQUEST_H
#define PUSH_REQUEST_H

#include "push/protocol.h"

const struct protocol *request_protocol(const struct target *target);

/* Makes the whole request: the protocol's, and what every one has. 0, or -errno with one line in error:
 * -EACCES if the token cannot be had now, -ENOMEM; anything else is the profile's fault. */
int request_make(const struct target *target, const struct delivery *delivery, struct http_request *request,
    char *error, size_t error_bytes);

/* What the protocol says to a whole answer. What is printed of it does not have the token in it, should the
 * server have repeated that. */
enum retry_verdict request_judge(
    const struct target *target, const struct http_request *request, struct answer *answer, char *text);

#endif
