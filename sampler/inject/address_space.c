/* SPDX-License-Identifier: Apache-2.0 */
#include "sampler/inject/address_space.h"

#include "pprof/table/array.h"
#include "sampler/intake/region.h"
#include "sampler/linux/proc.h"
#include "sampler/unwind/maps.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <unistd.h>

enum {
	SEARCH_MOST_BYTES = 64 << 20,
	PATHS_MOST_BYTES = 16 << 20, /* the kernel would allow 256 MiB: 65,530 mappings of 4 KiB */
	LOCK_PAUSE_MS = 5,
};

#define MEMORY "memfd:" /* how the kernel names a file in memory */

static void drop_mappings(struct address_space *space)
{
	for (size_t i = 0; i < space->count; i++)
		free(space->mappings[i].path);
	space->count = space->path_bytes = 0;
}

static int add_line(struct address_space *space, const char *line)
{
	struct map_range range;
	const char *flags = strchr(line, ' ');

	if (!maps_parse_line(line, &range))
		return 0;
	space->path_bytes += strlen(range.path);
	if (space->path_bytes > PATHS_MOST_BYTES)
		return -E2BIG;
	int error =
	    array_reserve(&space->mappings, &space->capacity, space->count + 1, sizeof(*space->mappings));
	char *path = error ? NULL : strdup(range.path);
	if (!path)
		return -ENOMEM;
	space->mappings[space->count++] = (struct mapping){
	    .start = range.start,
	    .end = range.start + range.len,
	    .offset = range.pgoff,
	    .ino = range.ino,
	    .prot = range.prot,
	    .shared = flags && strlen(flags) > 4 && flags[4] == 's',
	    .path = path,
	};
	return 0;
}

int address_space_refresh(struct address_space *space)
{
	char *line = NULL;
	size_t room = 0;
	ssize_t length;
	int error = 0;
	FILE *file = proc_open_text(space->pid, "maps");

	if (!file)
		return -errno;
	drop_mappings(space);
	while (!error && (length = getline(&line, &room, file)) > 0) {
		if (line[length - 1] == '\n')
			line[length - 1] = '\0';
		error = add_line(space, line);
	}
	free(line);
	fclose(file);
	return error ? error : space->count ? 0 : -ESRCH;
}

int address_space_open(struct address_space *space, pid_t pid)
{
	char path[PROC_PATH_BYTES];

	*space = (struct address_space){.pid = pid, .memory_fd = -1};
	space->memory_fd = open(proc_path(path, pid, "mem"), O_RDWR | O_CLOEXEC);
	return space->memory_fd < 0 ? -errno : address_space_refresh(space);
}

int address_space_lock(const struct address_space *space, int limit_ms, int cancel_fd)
{
	struct pollfd cancel = {.fd = cancel_fd, .events = POLLIN};

	for (int ms = 0; flock(space->memory_fd, LOCK_EX | LOCK_NB) != 0; ms += LOCK_PAUSE_MS)
		if (ms >= limit_ms || poll(&cancel, 1, LOCK_PAUSE_MS) > 0)
			return -EBUSY;
	return 0;
}

void address_space_close(struct address_space *space)
{
	drop_mappings(space);
	free(space->mappings);
	if (space->memory_fd >= 0)
		close(space->memory_fd);
	*space = (struct address_space){.memory_fd = -1};
}

const struct mapping *address_space_find(const struct address_space *space, uint64_t address)
{
	size_t low = ARRAY_UPPER_BOUND(space->mappings, space->count, end, address);

	return low < space->count && space->mappings[low].start <= address ? &space->mappings[low] : NULL;
}

bool address_space_is_named(const struct mapping *mapping, const char *name, bool prefix)
{
	const char *slash = strrchr(mapping->path, '/'), *base = slash ? slash + 1 : mapping->path;
	size_t length = strlen(name);

	if (strncmp(base, MEMORY, strlen(MEMORY)) == 0)
		base += strlen(MEMORY);
	return strncmp(base, name, length) == 0 &&
	    (base[length] == '\0' || base[length] == ' ' || (prefix && strchr("-.", base[length])));
}

const struct mapping *address_space_file(const struct address_space *space, const char *name, bool prefix)
{
	for (size_t i = 0; i < space->count; i++)
		if (address_space_is_named(&space->mappings[i], name, prefix))
			return &space->mappings[i];
	return NULL;
}

bool address_space_is_memory(const struct mapping *mapping)
{
	return strncmp(mapping->path, "/" MEMORY, strlen("/" MEMORY)) == 0;
}

const struct mapping *address_space_memory(const struct address_space *space, const char *name)
{
	for (size_t i = 0; i < space->count; i++)
		if (address_space_is_memory(&space->mappings[i]) &&
		    address_space_is_named(&space->mappings[i], name, false))
			return &space->mappings[i];
	return NULL;
}

static bool is_mere_offer(const struct address_space *space, const struct mapping *mapping)
{
	uint32_t state;
	const uint64_t at = mapping->start + offsetof(struct region_header, state);

	return address_space_read_some(space, at, &state, sizeof(state)) == sizeof(state) &&
	    state == REGION_OFFERED;
}

const struct mapping *address_space_region(const struct address_space *space)
{
	for (size_t i = 0; i < space->count; i++)
		if (address_space_is_memory(&space->mappings[i]) &&
		    address_space_is_named(&space->mappings[i], REGION_MEMORY_NAME, false) &&
		    space->mappings[i].offset == 0 && /* its header is there */
		    !is_mere_offer(space, &space->mappings[i]))
			return &space->mappings[i];
	return NULL;
}

size_t address_space_read_some(const struct address_space *space, uint64_t address, void *to, size_t bytes)
{
	size_t done = 0;

	while (done < bytes) {
		ssize_t got =
		    pread(space->memory_fd, (char *)to + done, bytes - done, (off_t)(address + done));

		if (got <= 0)
			break;
		done += (size_t)got;
	}
	return done;
}

int address_space_read(const struct address_space *space, uint64_t address, void *to, size_t bytes)
{
	return address_space_read_some(space, address, to, bytes) == bytes ? 0 : -EFAULT;
}

int address_space_write(const struct address_space *space, uint64_t address, const void *from, size_t bytes)
{
	return pwrite(space->memory_fd, from, bytes, (off_t)address) == (ssize_t)bytes ? 0 : -EFAULT;
}

uint64_t address_space_search(
    const struct address_space *space, const struct mapping *file, const unsigned char *bytes, size_t count)
{
	for (size_t i = 0; i < space->count; i++) {
		const struct mapping *mapping = &space->mappings[i];
		size_t length = mapping->end - mapping->start;

		if (!(mapping->prot & PROT_EXEC) || mapping->ino != file->ino ||
		    strcmp(mapping->path, file->path) != 0 || length > SEARCH_MOST_BYTES)
			continue;
		unsigned char *text = malloc(length);
		size_t got = text ? address_space_read_some(space, mapping->start, text, length) : 0;
		const unsigned char *at = got ? memmem(text, got, bytes, count) : NULL;
		uint64_t found = at ? mapping->start + (uint64_t)(at - text) : 0;
		free(text);
		if (found)
			return found;
	}
	return 0;
}

uint64_t address_space_auxiliary(const struct address_space *space, uint64_t type)
{
	uint64_t words[128];
	ssize_t got = proc_read(space->pid, "auxv", (char *)words, sizeof(words));

	for (size_t i = 0; got > 0 && i + 1 < (size_t)got / sizeof(*words); i += 2)
		if (words[i] == type)
			return words[i + 1];
	return 0;
}
