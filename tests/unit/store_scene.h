/* SPDX-License-Identifier: Apache-2.0 */
/* A store on the disk, in a folder of the test's own. */
#ifndef TESTS_UNIT_STORE_SCENE_H
#define TESTS_UNIT_STORE_SCENE_H

#include "pprof/store/store.h"

#include <fcntl.h>
#include <ftw.h>
#include <limits.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static char folder[] = "/tmp/heaptap-store.XXXXXX", root[64];
static uint8_t bytes[256 << 10];

static inline int remove_one(const char *path, const struct stat *st, int flag, struct FTW *at)
{
	return remove(path);
}

static inline void clear(void)
{
	nftw(root, remove_one, 16, FTW_DEPTH | FTW_PHYS);
}

static uint64_t disk_bytes;

static inline int count_one(const char *path, const struct stat *st, int flag, struct FTW *at)
{
	if (flag != FTW_NS)
		disk_bytes += ((uint64_t)st->st_size + 4095) / 4096 * 4096;
	return 0;
}

/* What all files and folders take, in blocks; those that are being removed are not there. */
static inline uint64_t disk_use(void)
{
	disk_bytes = 0;
	nftw(root, count_one, 16, FTW_PHYS);
	return disk_bytes;
}

static inline struct store *open_store(uint64_t most_bytes)
{
	const struct store_settings settings = {.path = root, .disk_bytes = most_bytes, .days = 7};
	struct store *store;

	assert_int_equal(store_open(&store, &settings), 0);
	return store;
}

static inline int publish_at(struct store *store, const char *service, const char *snapshot, pid_t pid,
    int64_t time_s, size_t length, char path[PATH_MAX])
{
	const struct store_claim claim = {
	    .service = service, .snapshot = snapshot, .pid = pid, .time_s = time_s};

	assert_int_equal(store_claim(store, &claim, path, PATH_MAX), 0);
	return store_sink(store)->publish(store_sink(store), path, bytes, length);
}

static inline void put_file(const char *below)
{
	char path[PATH_MAX];
	int fd;

	mkdir(root, 0755);
	snprintf(path, sizeof(path), "%s/%s", root, below);
	for (char *slash = path + strlen(root) + 1; (slash = strchr(slash, '/')); slash++) {
		*slash = '\0';
		mkdir(path, 0755);
		*slash = '/';
	}
	fd = open(path, O_WRONLY | O_CREAT, 0644);
	assert_true(fd >= 0);
	assert_int_equal(write(fd, bytes, 1000), 1000);
	close(fd);
}

static inline bool is_there(const char *below)
{
	char path[PATH_MAX];
	struct stat st;

	snprintf(path, sizeof(path), "%s/%s", root, below);
	return lstat(path, &st) == 0;
}

static inline bool begin(void)
{
	bool made = mkdtemp(folder) != NULL;

	snprintf(root, sizeof(root), "%s/store", folder);
	return made;
}

static inline int end(int failed)
{
	clear();
	rmdir(folder);
	return failed;
}

#endif
