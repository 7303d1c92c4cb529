/* SPDX-License-Identifier: Apache-2.0 */
#include "serve/token.h"

#include "pprof/codec/file.h"

#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>

enum { FILE_BYTES_MAX = 4096 };

/* token68 of RFC 7235 and a little more: what fits into a header, without spaces. */
int token_parse(struct token *token, const char *text, size_t length)
{
	size_t count = 0;

	token->text[0] = '\0';
	while (count < length && text[count] > ' ' && text[count] < 0x7f)
		count++;
	for (size_t rest = count; rest < length; rest++)
		if (!strchr(" \t\r\n", text[rest]) || !text[rest])
			return -EINVAL;
	if (count < TOKEN_BYTES_MIN || count > TOKEN_BYTES_MAX)
		return -EINVAL;
	memcpy(token->text, text, count);
	token->text[count] = '\0';
	return 0;
}

int token_read(struct token *token, const char *path, char *error, size_t error_bytes)
{
	struct stat status;
	uint8_t *bytes;
	size_t length;
	int err = stat(path, &status) ? -errno : 0;

	if (!err && (status.st_mode & 07)) {
		snprintf(error, error_bytes,
		    "--token-file %s: everybody may read or write it; chmod o= makes it a secret", path);
		return -EPERM;
	}
	if (!err)
		err = file_read(path, FILE_BYTES_MAX, &bytes, &length);
	if (err) {
		snprintf(error, error_bytes, "--token-file %s: %s", path, file_read_error(err));
		return err;
	}
	err = token_parse(token, (const char *)bytes, length);
	explicit_bzero(bytes, length);
	free(bytes);
	if (err)
		snprintf(error, error_bytes,
		    "--token-file %s: a token is one line of %d to %d letters, digits and signs; for example "
		    "of: openssl rand -hex 32",
		    path, TOKEN_BYTES_MIN, TOKEN_BYTES_MAX);
	return err;
}

bool token_is_shown(const struct token *token, const char *authorization)
{
	const char *shown = authorization;
	size_t wanted = strlen(token->text), length;
	unsigned int difference;

	if (!wanted)
		return true;
	if (!shown || strncasecmp(shown, "Bearer", 6) != 0 || shown[6] != ' ')
		return false;
	shown += 6 + strspn(shown + 6, " ");
	length = strcspn(shown, " ");
	difference = shown[length] != '\0' || length != wanted;
	for (size_t i = 0; i < length; i++)
		difference |= (unsigned char)(shown[i] ^ token->text[i % wanted]);
	return difference == 0;
}
