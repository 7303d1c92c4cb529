/* SPDX-License-Identifier: Apache-2.0 */
/* The table of all protocols, and what their requests and answers have in common. */
#ifndef PUSH_PROTOCOLS_H
#define PUSH_PROTOCOLS_H

#include "push/protocol.h"

const struct protocol *protocols_of(const struct target *target);

/* Makes a request with all its headers. 0, or -errno with one line in error. -EACCES: the token cannot be
 * read now. -ENOMEM: there is no memory. Any other error is the fault of the profile. */
int protocols_request(const struct target *target, const struct delivery *delivery,
    struct http_request *request, char *error, size_t error_bytes);

/* Judges a whole answer. The token is taken out of the text, even if the server repeated it. */
enum answer_verdict protocols_judge(
    const struct target *target, const struct http_request *request, struct answer *answer, char *text);

#endif
