/* SPDX-License-Identifier: Apache-2.0 */
#include "sampler/daemon/library_id.h"

#include "sampler/linux/proc.h"
#include "sampler/linux/regular_file.h"
#include "sampler/loader/preload_library.h"

#include <elfutils/libdwelf.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static bool is_library(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash && strncmp(slash + 1, PRELOAD_LIBRARY_NAME, strlen(PRELOAD_LIBRARY_NAME)) == 0;
}

/* Where it begins in memory: its name in /proc/PID/map_files. */
static bool find_mapping(pid_t pid, char name[64])
{
	char line[4352], path[4096];
	uint64_t start, end, offset;
	bool found = false;
	FILE *maps = proc_open_text(pid, "maps");

	while (maps && !found && fgets(line, sizeof(line), maps)) {
		path[0] = '\0';
		if (!strstr(line, PRELOAD_LIBRARY_NAME))
			continue;
		if (sscanf(line, "%" SCNx64 "-%" SCNx64 " %*s %" SCNx64 " %*s %*s %4095[^\n]", &start, &end,
		        &offset, path) != 4 ||
		    offset != 0 || !is_library(path))
			continue;
		snprintf(name, 64, "map_files/%" PRIx64 "-%" PRIx64, start, end);
		found = true;
	}
	if (maps)
		fclose(maps);
	return found;
}

static void read_id(int fd, char id[LIBRARY_ID_BYTES])
{
	const void *bytes;

	elf_version(EV_CURRENT);
	Elf *elf = elf_begin(fd, ELF_C_READ, NULL);
	ssize_t length = elf ? dwelf_elf_gnu_build_id(elf, &bytes) : -1;
	for (ssize_t i = 0; i < length && 2 * i + 2 < LIBRARY_ID_BYTES; i++)
		snprintf(id + 2 * i, 3, "%02x", ((const unsigned char *)bytes)[i]);
	elf_end(elf);
}

void library_id_read(pid_t pid, char id[LIBRARY_ID_BYTES])
{
	static struct stat last;
	static char last_id[LIBRARY_ID_BYTES];
	char name[64], path[PROC_PATH_BYTES];
	struct stat status;

	id[0] = '\0';
	if (!find_mapping(pid, name))
		return;
	int fd = regular_file_open(AT_FDCWD, proc_path(path, pid, name), 0, &status);
	if (fd < 0)
		return;
	if (last_id[0] && status.st_dev == last.st_dev && status.st_ino == last.st_ino &&
	    status.st_mtim.tv_sec == last.st_mtim.tv_sec && status.st_mtim.tv_nsec == last.st_mtim.tv_nsec) {
		memcpy(id, last_id, LIBRARY_ID_BYTES);
	} else {
		read_id(fd, id);
		last = status;
		memcpy(last_id, id, LIBRARY_ID_BYTES);
	}
	close(fd);
}
