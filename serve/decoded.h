/* SPDX-License-Identifier: Apache-2.0 */
/* Profiles for an answer, decoded within one bound of memory, however many there are: any may be hostile. */
#ifndef SERVE_DECODED_H
#define SERVE_DECODED_H

#include "serve/blob.h"

struct profile;

/* *left_bytes: what all of them may still take; it becomes less by what this one takes. On 0 the caller owns
 * *profile (profile_free()). -ENOMEM; -EFBIG: there is not enough left; -EBADMSG: it is no profile. */
int decoded_make(const struct blob *blob, size_t *left_bytes, struct profile **profile);

#endif
