/* SPDX-License-Identifier: Apache-2.0 */
/* The token that clients must show (RFC 6750, "Authorization: Bearer TOKEN"). */
#ifndef SERVE_TOKEN_H
#define SERVE_TOKEN_H

#include <stdbool.h>
#include <stddef.h>

enum { TOKEN_BYTES_MIN = 16, TOKEN_BYTES_MAX = 512 };

struct token {
	char text[TOKEN_BYTES_MAX + 1]; /* "": none is needed */
};

/* Reads the first line of a file that only its owner and group may read. 0, or -errno with one line in
 * error. */
int token_read(struct token *token, const char *path, char *error, size_t error_bytes);

/* Pure: the same of the file's bytes. 0 or -EINVAL. */
int token_parse(struct token *token, const char *text, size_t length);

/* Pure: does the value of an Authorization header (NULL: there is none) show it? The time it takes depends
 * on the length of what was sent and on nothing else. */
bool token_is_shown(const struct token *token, const char *authorization);

#endif
