/* SPDX-License-Identifier: Apache-2.0 */
#include "preload/overcommit.h"

#include "preload/raw_file.h"

#include <fcntl.h>

bool overcommit_is_strict(const char *path)
{
	char text[2];
	const int fd = raw_file_open(path, O_RDONLY);

	if (fd < 0)
		return false;
	const ssize_t got = raw_file_read(fd, text, sizeof(text));
	raw_file_close(fd);
	return got > 0 && text[0] == '2' && (got == 1 || text[1] == '\n');
}
