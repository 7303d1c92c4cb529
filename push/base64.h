/* SPDX-License-Identifier: Apache-2.0 */
/* Base64 (RFC 4648, section 4), as HTTP's Basic authentication has it. */
#ifndef PUSH_BASE64_H
#define PUSH_BASE64_H

#include <stddef.h>

/* With padding; cut at a multiple of four characters. */
void base64_encode(const void *bytes, size_t length, char *text, size_t text_bytes);

#endif
