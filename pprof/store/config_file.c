/* SPDX-License-Identifier: Apache-2.0 */
#include "pprof/store/config_file.h"

#include "pprof/codec/file.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int config_file_read(const struct ini_text_reader *reader, const char *path, char *error, size_t error_bytes)
{
	uint8_t *bytes;
	char *text;
	size_t length;
	int err = file_read(path, CONFIG_FILE_BYTES_MAX, &bytes, &length);

	if (err) {
		snprintf(error, error_bytes, "cannot read %s: %s", path, file_read_error(err));
		return err;
	}
	if (memchr(bytes, '\0', length)) {
		snprintf(error, error_bytes, "%s: not a text: it has bytes 0", path);
		free(bytes);
		return -EINVAL;
	}
	text = strndup((const char *)bytes, length);
	free(bytes);
	if (!text) {
		snprintf(error, error_bytes, "not enough memory");
		return -ENOMEM;
	}
	err = ini_text_parse(reader, text, path, error, error_bytes);
	free(text);
	return err;
}
