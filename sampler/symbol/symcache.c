/* SPDX-License-Identifier: Apache-2.0 */
#include "sampler/symbol/symcache.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>
#include <zlib.h>

#include "pprof/codec/folder.h"
#include "sampler/linux/regular_file.h"

#define MAGIC        "heaptap-symbols1"
#define ENTRY_SUFFIX ".sym"
#define SIZES_NAME   ".sizes"

enum {
	BUILD_ID_MAX = 64,
	ENTRIES_MAX = 65536,
	STALE_TEMP_SECONDS = 600,
	SIZES_MAX = 1024, /* entries of .sizes; then the folder is listed */
};

struct header {
	char magic[16];
	uint64_t source_id;
	uint32_t checksum; /* CRC-32 of what follows the header */
	uint32_t byte_count;
};

_Static_assert(sizeof(struct header) == 32, "on disk");

int symcache_folder(char *path, size_t path_bytes)
{
	return folder_of_user("XDG_CACHE_HOME", ".cache", "/heaptap", path, path_bytes);
}

/* Under sudo root keeps the user's $HOME: a folder that is not our own, or that others may write to, is not
 * used, and nothing is made below another user's. Returns a descriptor or -errno. */
static int open_folder(const char *path, unsigned int flags)
{
	struct folder folder;
	int error = folder_open(&folder, NULL, path, FOLDER_OWN | flags, 0700);

	return error ? error : folder.fd;
}

static int entry_name(char name[2 * BUILD_ID_MAX + 8], const uint8_t *build_id, size_t build_id_bytes)
{
	if (build_id_bytes == 0 || build_id_bytes > BUILD_ID_MAX)
		return -EINVAL;
	for (size_t i = 0; i < build_id_bytes; i++)
		sprintf(name + 2 * i, "%02x", build_id[i]);
	strcpy(name + 2 * build_id_bytes, ENTRY_SUFFIX);
	return 0;
}

static int read_all(int fd, void *buffer, size_t byte_count, off_t offset)
{
	for (size_t done = 0; done < byte_count;) {
		ssize_t got = pread(fd, (char *)buffer + done, byte_count - done, offset + (off_t)done);

		if (got < 0)
			return -errno;
		if (got == 0)
			return -EBADMSG;
		done += (size_t)got;
	}
	return 0;
}

static int read_entry(
    int fd, const struct stat *status, uint64_t source_id, uint8_t **bytes, size_t *byte_count)
{
	struct header header;
	uint8_t *buffer;
	int error;

	if (status->st_uid != geteuid() || status->st_size < (off_t)sizeof(header))
		return -EBADMSG;
	error = read_all(fd, &header, sizeof(header), 0);
	if (error)
		return error;
	if (memcmp(header.magic, MAGIC, sizeof(header.magic)) != 0 ||
	    header.byte_count > SYMCACHE_ENTRY_BYTES_MAX ||
	    status->st_size != (off_t)(sizeof(header) + header.byte_count))
		return -EBADMSG;
	if (header.source_id != source_id)
		return -ENOENT;
	buffer = malloc(header.byte_count + 1);
	if (!buffer)
		return -ENOMEM;
	error = read_all(fd, buffer, header.byte_count, sizeof(header));
	if (!error && crc32(0, buffer, header.byte_count) != header.checksum)
		error = -EBADMSG;
	if (error) {
		free(buffer);
		return error;
	}
	*bytes = buffer;
	*byte_count = header.byte_count;
	return 0;
}

int symcache_read(const char *folder, const uint8_t *build_id, size_t build_id_bytes, uint64_t source_id,
    uint8_t **bytes, size_t *byte_count)
{
	char name[2 * BUILD_ID_MAX + 8];
	struct stat status;
	int error = entry_name(name, build_id, build_id_bytes);
	int folder_fd, fd;

	if (error)
		return error;
	folder_fd = open_folder(folder, 0);
	if (folder_fd < 0)
		return folder_fd;
	fd = regular_file_open(folder_fd, name, 1, &status);
	close(folder_fd);
	if (fd < 0)
		return fd;
	error = read_entry(fd, &status, source_id, bytes, byte_count);
	if (!error) /* the oldest entries are removed first */
		futimens(fd, (const struct timespec[]){{.tv_nsec = UTIME_NOW}, {.tv_nsec = UTIME_NOW}});
	close(fd);
	return error;
}

struct entry {
	char name[2 * BUILD_ID_MAX + 8];
	int64_t used_ns;
	uint64_t bytes;
};

static int by_age(const void *left, const void *right)
{
	const struct entry *a = left, *b = right;

	return a->used_ns < b->used_ns ? -1 : a->used_ns > b->used_ns;
}

/* Fills entries with what is in the folder; removes what a killed writer left behind. Returns the count. */
static size_t list_entries(DIR *listing, struct entry *entries, uint64_t *total_bytes)
{
	size_t count = 0;
	struct dirent *one;

	*total_bytes = 0;
	while (count < ENTRIES_MAX && (one = readdir(listing))) {
		size_t length = strlen(one->d_name), suffix = strlen(ENTRY_SUFFIX);
		struct stat status;

		if (fstatat(dirfd(listing), one->d_name, &status, AT_SYMLINK_NOFOLLOW) != 0 ||
		    !S_ISREG(status.st_mode))
			continue;
		if (strncmp(one->d_name, ".new-", 5) == 0 &&
		    time(NULL) - status.st_mtime > STALE_TEMP_SECONDS)
			unlinkat(dirfd(listing), one->d_name, 0);
		if (one->d_name[0] == '.' || length < suffix || length >= sizeof(entries->name) ||
		    strcmp(one->d_name + length - suffix, ENTRY_SUFFIX) != 0)
			continue;
		memcpy(entries[count].name, one->d_name, length + 1);
		entries[count].used_ns = (int64_t)status.st_mtim.tv_sec * 1000000000 + status.st_mtim.tv_nsec;
		entries[count].bytes = (uint64_t)status.st_blocks * 512;
		*total_bytes += entries[count++].bytes;
	}
	return count;
}

static int write_all(int fd, const void *bytes, size_t byte_count)
{
	for (size_t done = 0; done < byte_count;) {
		ssize_t put = write(fd, (const char *)bytes + done, byte_count - done);

		if (put < 0 && errno != EINTR)
			return -errno;
		if (put > 0)
			done += (size_t)put;
	}
	return 0;
}

/* Creates the temporary file in the folder of the final name. Returns a descriptor or -errno. */
static int create_aside(int folder_fd, const char *temporary)
{
	unlinkat(folder_fd, temporary, 0);
	int fd = openat(folder_fd, temporary, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
	return fd >= 0 ? fd : -errno;
}

/* Renames the file of create_aside to its final name if there is no error, else removes it. */
static int publish(int folder_fd, int fd, const char *temporary, const char *name, int error)
{
	if (close(fd) != 0 && !error)
		error = -errno;
	if (!error && renameat(folder_fd, temporary, folder_fd, name) != 0)
		error = -errno;
	if (error)
		unlinkat(folder_fd, temporary, 0);
	return error;
}

/* Starts a new list. Without a list the next write lists the folder again. */
static void restart_sizes(int folder_fd, uint64_t total_bytes)
{
	char temporary[64];
	int64_t first = (int64_t)total_bytes;

	snprintf(temporary, sizeof(temporary), ".new-%d-sizes", (int)getpid());
	int fd = create_aside(folder_fd, temporary);
	if (fd >= 0)
		publish(folder_fd, fd, temporary, SIZES_NAME, write_all(fd, &first, sizeof(first)));
}

/* Adds to the list; true when it is time to list the folder. */
static bool note_size(int folder_fd, int64_t added_bytes, uint64_t limit_bytes)
{
	int64_t sizes[SIZES_MAX + 1], sum = 0;
	int fd = openat(
	    folder_fd, SIZES_NAME, O_RDWR | O_CREAT | O_APPEND | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC, 0600);

	if (fd < 0)
		return true;
	ssize_t got = write(fd, &added_bytes, sizeof(added_bytes)) == (ssize_t)sizeof(added_bytes)
	    ? pread(fd, sizes, sizeof(sizes), 0)
	    : -1;
	close(fd);
	/* A single entry means that there was no list before. */
	if (got <= (ssize_t)sizeof(sizes[0]) || got == (ssize_t)sizeof(sizes) || got % sizeof(sizes[0]) != 0)
		return true;
	for (size_t i = 0; i < (size_t)got / sizeof(sizes[0]); i++)
		if (__builtin_add_overflow(sum, sizes[i], &sum))
			return true;
	return sum < 0 || (uint64_t)sum > limit_bytes;
}

/* Removes the entries unused for the longest time, down to three quarters of the limit, so that it is not
 * needed again at once. */
static void evict(int folder_fd, uint64_t limit_bytes)
{
	int listing_fd = openat(folder_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *listing = listing_fd >= 0 ? fdopendir(listing_fd) : NULL;
	struct entry *entries = listing ? malloc(ENTRIES_MAX * sizeof(*entries)) : NULL;
	uint64_t total_bytes;

	if (entries) {
		size_t count = list_entries(listing, entries, &total_bytes);

		if (total_bytes > limit_bytes) {
			qsort(entries, count, sizeof(*entries), by_age);
			for (size_t i = 0; i < count && total_bytes > limit_bytes / 4 * 3; i++) {
				unlinkat(folder_fd, entries[i].name, 0);
				total_bytes -= entries[i].bytes;
			}
		}
		restart_sizes(folder_fd, total_bytes);
	}
	free(entries);
	if (listing)
		closedir(listing);
	else if (listing_fd >= 0)
		close(listing_fd);
}

/* Also returns by how many bytes the folder has grown on disk. */
static int write_entry(
    int folder_fd, const char *name, const struct header *header, const uint8_t *bytes, int64_t *added_bytes)
{
	char temporary[2 * BUILD_ID_MAX + 40];
	struct stat before, after;

	snprintf(temporary, sizeof(temporary), ".new-%d-%s", (int)getpid(), name);
	int fd = create_aside(folder_fd, temporary);
	if (fd < 0)
		return fd;
	int error = write_all(fd, header, sizeof(*header));
	if (!error)
		error = write_all(fd, bytes, header->byte_count);
	if (!error && fstat(fd, &after) != 0)
		error = -errno;
	*added_bytes = error ? 0 : (int64_t)after.st_blocks * 512;
	if (fstatat(folder_fd, name, &before, AT_SYMLINK_NOFOLLOW) == 0)
		*added_bytes -= (int64_t)before.st_blocks * 512;
	return publish(folder_fd, fd, temporary, name, error);
}

int symcache_write(const char *folder, uint64_t limit_bytes, const uint8_t *build_id, size_t build_id_bytes,
    uint64_t source_id, const uint8_t *bytes, size_t byte_count)
{
	struct header header = {.magic = MAGIC, .source_id = source_id, .byte_count = (uint32_t)byte_count};
	char name[2 * BUILD_ID_MAX + 8];
	int error = entry_name(name, build_id, build_id_bytes);
	int folder_fd;
	int64_t added_bytes;

	if (error)
		return error;
	if (byte_count > SYMCACHE_ENTRY_BYTES_MAX)
		return -EFBIG;
	header.checksum = (uint32_t)crc32(0, bytes, (uInt)byte_count);
	folder_fd = open_folder(folder, FOLDER_MAKE);
	if (folder_fd < 0)
		return folder_fd;
	error = write_entry(folder_fd, name, &header, bytes, &added_bytes);
	if (!error && note_size(folder_fd, added_bytes, limit_bytes))
		evict(folder_fd, limit_bytes);
	close(folder_fd);
	return error;
}
