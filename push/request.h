/* SPDX-License-Identifier: Apache-2.0 */
/* The request to a target, by its protocol. */
#ifndef PUSH_REQUEST_H
#define PUSH_REQUEST_H

#include "push/protocol.h"

const struct protocol *request_protocol(const struct target *target);

/* Makes the whole request: the protocol's, and what every one has. 0, or -errno with one line in error. */
int request_make(const struct target *target, const struct delivery *delivery, struct http_request *request,
    char *error, size_t error_bytes);

#endif
