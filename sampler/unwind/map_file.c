/* SPDX-License-Identifier: Apache-2.0 */
#include "sampler/unwind/map_file.h"

#include <stdlib.h>
#include <string.h>
#include <sys/sysmacros.h>

struct map_file *map_file_new(const struct map_range *range, const char *path)
{
	size_t n = strlen(path) + 1;
	struct map_file *file = calloc(1, sizeof(*file) + n);

	if (!file)
		return NULL;
	file->references = 1;
	file->start = range->start;
	file->end = range->start + range->len;
	file->dev = makedev(range->major, range->minor);
	file->ino = range->ino;
	file->pgoff = range->pgoff;
	file->listed = range->listed;
	if (range->build_id && range->build_id_len <= MODULE_BUILD_ID_BYTES) {
		file->build_id_len = range->build_id_len;
		memcpy(file->build_id, range->build_id, range->build_id_len);
	}
	file->path_bytes = (uint32_t)n;
	memcpy(file->path, path, n);
	return file;
}

void map_file_unref(struct map_file *file)
{
	if (--file->references == 0)
		free(file);
}
