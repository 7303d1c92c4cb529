/* SPDX-License-Identifier: Apache-2.0 */
/* A store on a file system of its own that gets full: skipped where none can be mounted. */
#include "pprof/store/store.h"

#include <errno.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <sys/mount.h>
#include <sys/statvfs.h>
#include <sys/wait.h>
#include <time.h>

#include <cmocka.h>

#include "tests/unit/store_scene.h"

/* A child with a tmpfs of its own at the store; it exits with 77 where that is not allowed. */
static void in_a_small_disk(void (*run)(void))
{
	int status;

	if (fork() == 0) {
		mkdir(root, 0755);
		if (unshare(CLONE_NEWNS) != 0 || mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) != 0 ||
		    mount("none", root, "tmpfs", 0, "size=1m") != 0)
			_exit(77);
		run();
		_exit(0);
	}
	wait(&status);
	clear();
	if (WIFEXITED(status) && WEXITSTATUS(status) == 77)
		skip();
	assert_int_equal(status, 0);
}

#define REQUIRE(condition)                                                      \
	do {                                                                    \
		if (!(condition)) {                                             \
			fprintf(stderr, "line %d: " #condition "\n", __LINE__); \
			_exit(1);                                               \
		}                                                               \
	} while (0)

static int publish_quietly_of(struct store *store, const char *service, const char *snapshot, size_t length)
{
	const struct store_claim claim = {
	    .service = service, .snapshot = snapshot, .pid = 7, .time_s = time(NULL)};
	char path[PATH_MAX];

	REQUIRE(store_claim(store, &claim, path, sizeof(path)) == 0);
	return store_sink(store)->publish(store_sink(store), path, bytes, length);
}

static int publish_quietly(struct store *store, const char *snapshot, size_t length)
{
	return publish_quietly_of(store, "a", snapshot, length);
}

static void run_on_a_full_disk(void)
{
	const struct store_settings settings = {.path = root, .disk_bytes = 1 << 30, .days = 7};
	struct store *store;
	char filler[PATH_MAX];
	int fd, err;

	REQUIRE(store_open(&store, &settings) == 0);
	REQUIRE(publish_quietly(store, "exit", 50000) == 0);
	for (int i = 0; i < 100; i++) /* old ones make room */
		REQUIRE(publish_quietly(store, "0001", 50000) == 0);
	snprintf(filler, sizeof(filler), "%s/filler", root);
	fd = open(filler, O_WRONLY | O_CREAT, 0600);
	while (write(fd, bytes, 4096) > 0)
		continue;
	REQUIRE(publish_quietly(store, "0001", 50000) == 0);
	while (write(fd, bytes, 4096) > 0)
		continue;
	while ((err = publish_quietly(store, "exit", 50000)) == 0) /* ends do not go for others */
		continue;
	REQUIRE(err == -ENOSPC);
	close(fd);
	unlink(filler);
	REQUIRE(publish_quietly(store, "0001", 50000) == 0);
	store_close(store);
}

static void a_full_disk_is_an_error_until_there_is_room(void **state)
{
	in_a_small_disk(run_on_a_full_disk);
}

/* Its folders are made, found empty by the look, and made again: they count once. */
static void run_for_a_new_service(void)
{
	const struct store_settings settings = {.path = root, .disk_bytes = 1 << 30, .days = 7};
	struct store_counters before, counted, looked;
	struct store *store;
	struct statvfs fs;

	REQUIRE(store_open(&store, &settings) == 0);
	while (statvfs(root, &fs) == 0 && fs.f_bavail * fs.f_bsize >= 50000)
		REQUIRE(publish_quietly(store, "0001", 50000) == 0);
	store_count(store, &before);
	REQUIRE(publish_quietly_of(store, "b", "0001", 50000) == 0);
	store_count(store, &counted);
	REQUIRE(before.evicted == 0 && counted.evicted > 0);
	REQUIRE(store_change(store, &settings) == 0); /* so that a look is due */
	REQUIRE(store_thin(store) == 0);
	store_count(store, &looked);
	REQUIRE(counted.disk_bytes == looked.disk_bytes && looked.disk_bytes >= disk_use());
	store_close(store);
}

static void what_is_made_twice_counts_once(void **state)
{
	in_a_small_disk(run_for_a_new_service);
}

/* Bytes there are enough. A folder that cannot be made says why, and a new service finds three inodes. */
static void run_without_inodes(void)
{
	const struct store_settings settings = {.path = root, .disk_bytes = 1 << 30, .days = 7};
	struct store *store;
	struct statvfs fs;
	char filler[PATH_MAX];

	REQUIRE(mount("none", root, "tmpfs", MS_REMOUNT, "size=1m,nr_inodes=40") == 0);
	REQUIRE(store_open(&store, &settings) == 0);
	REQUIRE(publish_quietly(store, "exit", 1000) == 0);
	for (int i = 0; statvfs(root, &fs) == 0 && fs.f_ffree; i++) {
		snprintf(filler, sizeof(filler), "%s/filler%d", root, i);
		close(open(filler, O_WRONLY | O_CREAT, 0600));
	}
	REQUIRE(publish_quietly_of(store, "b", "0001", 1000) == -ENOSPC);
	for (int i = 0; i < 8; i++) {
		snprintf(filler, sizeof(filler), "%s/filler%d", root, i);
		REQUIRE(unlink(filler) == 0);
		REQUIRE(publish_quietly(store, "0001", 20000) == 0);
	}
	REQUIRE(statvfs(root, &fs) == 0 && fs.f_ffree == 0 && fs.f_bavail > fs.f_blocks / 4);
	REQUIRE(publish_quietly_of(store, "b", "0001", 1000) == 0);
	store_close(store);
}

static void without_inodes_old_ones_make_room(void **state)
{
	in_a_small_disk(run_without_inodes);
}

static uint64_t free_percent(void)
{
	struct statvfs fs;

	REQUIRE(statvfs(root, &fs) == 0);
	return (uint64_t)fs.f_bavail * 100 / fs.f_blocks;
}

static void run_with_free(void)
{
	const struct store_settings settings = {
	    .path = root, .disk_bytes = 1 << 30, .days = 7, .free_percent = 30};
	struct store *store;

	REQUIRE(store_open(&store, &settings) == 0);
	for (int i = 0; i < 100; i++) {
		REQUIRE(publish_quietly(store, "0001", 30000) == 0);
		REQUIRE(free_percent() >= 30);
	}
	for (int i = 0; i < 60; i++) { /* ends are not removed for the disk's sake */
		int err = publish_quietly(store, "exit", 30000);

		REQUIRE(err == 0 || err == -ENOSPC);
		REQUIRE(free_percent() >= 30);
	}
	REQUIRE(publish_quietly(store, "exit", 30000) == -ENOSPC);
	store_close(store);
}

static void some_of_the_disk_stays_free(void **state)
{
	in_a_small_disk(run_with_free);
}

static void run_read_only(void)
{
	const struct store_settings settings = {.path = root, .disk_bytes = 1 << 20, .days = 7};
	struct store *store;

	REQUIRE(store_open(&store, &settings) == 0);
	REQUIRE(publish_quietly(store, "0001", 1000) == 0);
	REQUIRE(mount("none", root, "tmpfs", MS_REMOUNT | MS_RDONLY, NULL) == 0);
	REQUIRE(publish_quietly(store, "0001", 1000) == -EROFS);
	store_close(store);
	REQUIRE(store_open(&store, &settings) == -EROFS);
	REQUIRE(publish_quietly(store, "0001", 1000) == -EROFS);
	REQUIRE(mount("none", root, "tmpfs", MS_REMOUNT, NULL) == 0);
	REQUIRE(publish_quietly(store, "0001", 1000) == 0);
	store_close(store);
}

static void a_read_only_store_is_an_error_until_it_is_not(void **state)
{
	in_a_small_disk(run_read_only);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(a_full_disk_is_an_error_until_there_is_room),
	    cmocka_unit_test(what_is_made_twice_counts_once),
	    cmocka_unit_test(without_inodes_old_ones_make_room),
	    cmocka_unit_test(some_of_the_disk_stays_free),
	    cmocka_unit_test(a_read_only_store_is_an_error_until_it_is_not),
	};

	if (!begin())
		return 1;
	return end(cmocka_run_group_tests(tests, NULL, NULL));
}
