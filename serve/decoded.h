/* SPDX-License-Identifier: Apache-2.0 */
/* Profiles for an answer, decoded within one bound of memory, however many there are: any may be hostile. */
#ifndef SERVE_DECODED_H
#define SERVE_DECODED_H

#include "serve/blob.h"

struct profile;

/* Of the foreign profiles of an answer, all together: their bytes, uncompressed, and the memory that they
 * take. Other answers wait while one is made, and 400 MB may be sent as 400 KB. */
#define DECODED_FOREIGN_BYTES ((size_t)128 << 20)

/* What the profiles of an answer may still take; each makes it less. */
struct decoded_budget {
	size_t left_bytes;
	size_t foreign_left_bytes; /* at first DECODED_FOREIGN_BYTES */
};

/* On 0 the caller owns *profile (profile_free()). -ENOMEM; -EFBIG: there is not enough left; -EBADMSG: it is
 * no profile. */
int decoded_make(const struct blob *blob, struct decoded_budget *budget, struct profile **profile);

#endif
