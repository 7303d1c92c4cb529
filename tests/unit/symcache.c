/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "sampler/symbol/symcache.h"
#include "tests/unit/workshop.h"

static const uint8_t id_a[20] = {0xab, 0xcd, 1}, id_b[20] = {0xab, 0xcd, 2};

static const char *folder_in(void **state, const char *name)
{
	return workshop_path(*state, name);
}

static int put(const char *folder, const uint8_t *id, uint64_t source, const char *text)
{
	return symcache_write(folder, 1 << 20, id, 20, source, (const uint8_t *)text, strlen(text));
}

/* What the entry holds, in a static buffer; NULL: nothing, with the error in *error. */
static const char *get(const char *folder, const uint8_t *id, uint64_t source, int *error)
{
	static char text[256];
	uint8_t *bytes;
	size_t count;

	*error = symcache_read(folder, id, 20, source, &bytes, &count);
	if (*error)
		return NULL;
	assert_true(count < sizeof(text));
	memcpy(text, bytes, count);
	text[count] = '\0';
	free(bytes);
	return text;
}

static void entries_are_kept_by_build_id(void **state)
{
	const char *folder = folder_in(state, "a/b/heaptap");
	struct stat status;
	int error;

	assert_null(get(folder, id_a, 1, &error));
	assert_int_equal(error, -ENOENT);
	assert_int_equal(put(folder, id_a, 1, "one"), 0);
	assert_int_equal(put(folder, id_b, 1, "two"), 0);
	assert_string_equal(get(folder, id_a, 1, &error), "one");
	assert_string_equal(get(folder, id_b, 1, &error), "two");
	assert_int_equal(put(folder, id_a, 1, ""), 0);
	assert_string_equal(get(folder, id_a, 1, &error), "");
	assert_int_equal(stat(folder, &status), 0);
	assert_int_equal(status.st_mode & 0777, 0700);
}

static void another_source_is_a_miss_and_replaces(void **state)
{
	const char *folder = folder_in(state, "source");
	int error;

	assert_int_equal(put(folder, id_a, 1, "stripped"), 0);
	assert_null(get(folder, id_a, 2, &error));
	assert_int_equal(error, -ENOENT);
	assert_int_equal(put(folder, id_a, 2, "full"), 0);
	assert_string_equal(get(folder, id_a, 2, &error), "full");
	assert_null(get(folder, id_a, 1, &error));
}

static const char *entry_path(const char *folder, const uint8_t *id)
{
	static char path[512];
	int length = sprintf(path, "%s/", folder);

	for (int i = 0; i < 20; i++)
		length += sprintf(path + length, "%02x", id[i]);
	strcpy(path + length, ".sym");
	return path;
}

static void damage_is_noticed(void **state)
{
	const char *folder = folder_in(state, "damage");
	struct stat status;
	int error, fd;

	assert_int_equal(put(folder, id_a, 7, "some symbols"), 0);
	assert_int_equal(stat(entry_path(folder, id_a), &status), 0);
	for (off_t at = 0; at < status.st_size; at++) {
		uint8_t byte, changed;

		fd = open(entry_path(folder, id_a), O_RDWR);
		assert_int_equal(pread(fd, &byte, 1, at), 1);
		changed = byte ^ 0x40;
		assert_int_equal(pwrite(fd, &changed, 1, at), 1);
		assert_null(get(folder, id_a, 7, &error));
		assert_true(error == -EBADMSG || error == -ENOENT);
		assert_int_equal(pwrite(fd, &byte, 1, at), 1);
		close(fd);
	}
	assert_string_equal(get(folder, id_a, 7, &error), "some symbols");
	for (off_t length = status.st_size - 1; length >= 0; length--) {
		assert_int_equal(truncate(entry_path(folder, id_a), length), 0);
		assert_null(get(folder, id_a, 7, &error));
		assert_int_equal(error, -EBADMSG);
	}
	assert_int_equal(put(folder, id_a, 7, "again"), 0);
	assert_string_equal(get(folder, id_a, 7, &error), "again");
}

static void only_plain_files_are_read(void **state)
{
	const char *folder = folder_in(state, "plain"), *target = folder_in(state, "target");
	int error;

	assert_int_equal(put(folder, id_a, 7, "text"), 0);
	assert_int_equal(rename(entry_path(folder, id_a), target), 0);
	assert_int_equal(symlink(target, entry_path(folder, id_a)), 0);
	assert_null(get(folder, id_a, 7, &error));
	assert_int_equal(unlink(entry_path(folder, id_a)), 0);
	assert_int_equal(mkfifo(entry_path(folder, id_a), 0600), 0);
	assert_null(get(folder, id_a, 7, &error));
	assert_int_equal(put(folder, id_a, 7, "new"), 0);
	assert_string_equal(get(folder, id_a, 7, &error), "new");
}

static void a_folder_that_others_can_write_to_is_not_used(void **state)
{
	const char *folder = folder_in(state, "open");
	int error;

	assert_int_equal(put(folder, id_a, 1, "text"), 0);
	assert_int_equal(chmod(folder, 0777), 0);
	assert_null(get(folder, id_a, 1, &error));
	assert_int_equal(error, -EPERM);
	assert_int_equal(put(folder, id_a, 1, "text"), -EPERM);
	if (geteuid() == 0) {
		assert_int_equal(chmod(folder, 0700), 0);
		assert_int_equal(chown(folder, 65534, 65534), 0);
		assert_null(get(folder, id_a, 1, &error));
		assert_int_equal(error, -EPERM);
	}
}

static void the_longest_unused_entries_go(void **state)
{
	const char *folder = folder_in(state, "full");
	uint8_t id[20] = {0}, *bytes = malloc(4096);
	int error, left = 0;

	memset(bytes, 'x', 4096);
	for (id[0] = 0; id[0] < 10; id[0]++) {
		struct timespec times[2] = {{.tv_sec = 1000 + id[0]}, {.tv_sec = 1000 + id[0]}};

		assert_int_equal(symcache_write(folder, 1 << 20, id, 20, 1, bytes, 4000), 0);
		assert_int_equal(utimensat(AT_FDCWD, entry_path(folder, id), times, 0), 0);
	}
	id[0] = 0;
	free(bytes);
	assert_int_equal(symcache_read(folder, id, 20, 1, &bytes, &(size_t){0}), 0); /* now the youngest */
	assert_int_equal(symcache_write(folder, 6 * 4096, id_b, 20, 1, bytes, 4000), 0);
	free(bytes);
	for (id[0] = 1; id[0] < 10; id[0]++) {
		bool there = access(entry_path(folder, id), F_OK) == 0;

		assert_true(left == 0 || there); /* the old ones went first */
		left += there;
	}
	assert_in_range(left, 1, 6);
	id[0] = 0;
	assert_int_equal(access(entry_path(folder, id), F_OK), 0);
	assert_int_equal(access(entry_path(folder, id_b), F_OK), 0);
	assert_null(get(folder, id_a, 1, &error));
}

/* Of the entries, as the disk has them. */
static uint64_t folder_bytes(const char *folder)
{
	DIR *listing = opendir(folder);
	uint64_t bytes = 0;
	struct dirent *entry;
	struct stat status;

	while ((entry = readdir(listing)))
		if (strstr(entry->d_name, ".sym") && fstatat(dirfd(listing), entry->d_name, &status, 0) == 0)
			bytes += (uint64_t)status.st_blocks * 512;
	closedir(listing);
	return bytes;
}

/* A look through the folder removes what a killed writer has left: that is how one is noticed here. */
static bool make_leftover(const char *path)
{
	static const struct timespec long_ago[2] = {{.tv_sec = 1000}, {.tv_sec = 1000}};
	int fd = open(path, O_WRONLY | O_CREAT, 0600);

	return fd >= 0 && close(fd) == 0 && utimensat(AT_FDCWD, path, long_ago, 0) == 0;
}

static void the_bound_holds_without_a_look_at_each_write(void **state)
{
	enum { LIMIT = 64 * 4096, WRITES = 400 };
	const char *folder = folder_in(state, "crowd");
	char leftover[512];
	uint8_t id[20] = {1}, bytes[4000] = {0};
	int looks = 0;

	snprintf(leftover, sizeof(leftover), "%s/.new-1-x", folder);
	assert_int_equal(symcache_write(folder, LIMIT, id, 20, 1, bytes, sizeof(bytes)), 0);
	for (int i = 0; i < WRITES; i++) {
		assert_true(make_leftover(leftover));
		id[1] = (uint8_t)i;
		id[2] = (uint8_t)(i >> 8);
		assert_int_equal(symcache_write(folder, LIMIT, id, 20, 1, bytes, sizeof(bytes)), 0);
		looks += access(leftover, F_OK) != 0;
		assert_true(folder_bytes(folder) <= LIMIT);
	}
	assert_in_range(looks, WRITES / 64, WRITES / 8);
	/* To write the same entry again and again adds nothing. */
	looks = 0;
	for (int i = 0; i < 100; i++) {
		assert_true(make_leftover(leftover));
		assert_int_equal(symcache_write(folder, LIMIT, id, 20, 1, bytes, sizeof(bytes)), 0);
		looks += access(leftover, F_OK) != 0;
	}
	assert_in_range(looks, 0, 1);
	/* Nor does it go on for ever unlooked: entries may have come from elsewhere. */
	for (int i = 0; i < 2000 && looks < 2; i++) {
		assert_true(make_leftover(leftover));
		assert_int_equal(symcache_write(folder, LIMIT, id, 20, 1, bytes, sizeof(bytes)), 0);
		looks += access(leftover, F_OK) != 0;
	}
	assert_int_equal(looks, 2);
}

/* A folder of a version before, or whose list was damaged or removed. */
static void without_its_list_the_folder_is_looked_through(void **state)
{
	static const char *const lists[] = {"", "12345", "0123456\377"};
	const char *folder = folder_in(state, "listless");
	uint8_t id[20] = {2}, bytes[4000] = {0};
	char list[512];

	snprintf(list, sizeof(list), "%s/.sizes", folder);
	for (size_t i = 0; i < 4; i++) {
		for (id[1] = 0; id[1] < 20; id[1]++)
			assert_int_equal(symcache_write(folder, 1 << 20, id, 20, 1, bytes, sizeof(bytes)), 0);
		assert_int_equal(unlink(list), 0);
		if (i < 3) {
			FILE *file = fopen(list, "w");

			assert_non_null(file);
			fputs(lists[i], file);
			fclose(file);
		}
		assert_int_equal(symcache_write(folder, 8 * 4096, id, 20, 1, bytes, sizeof(bytes)), 0);
		assert_true(folder_bytes(folder) <= 8 * 4096);
	}
}

static void nothing_is_left_behind(void **state)
{
	const char *folder = folder_in(state, "tidy");
	struct dirent *entry;
	int count = 0;
	DIR *listing;

	assert_int_equal(put(folder, id_a, 1, "text"), 0);
	assert_int_equal(put(folder, id_a, 1, "text"), 0);
	listing = opendir(folder);
	while ((entry = readdir(listing)))
		count += entry->d_name[0] != '.' || strncmp(entry->d_name, ".new", 4) == 0;
	closedir(listing);
	assert_int_equal(count, 1);
}

static void the_folder_follows_the_environment(void **state)
{
	char path[64];

	setenv("XDG_CACHE_HOME", "/var/x", 1);
	setenv("HOME", "/home/u", 1);
	assert_int_equal(symcache_folder(path, sizeof(path)), 0);
	assert_string_equal(path, "/var/x/heaptap");
	setenv("XDG_CACHE_HOME", "relative", 1);
	assert_int_equal(symcache_folder(path, sizeof(path)), 0);
	assert_string_equal(path, "/home/u/.cache/heaptap");
	assert_int_equal(symcache_folder(path, 10), -ENAMETOOLONG);
	unsetenv("XDG_CACHE_HOME");
	unsetenv("HOME");
	assert_int_equal(symcache_folder(path, sizeof(path)), -ENOENT);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(entries_are_kept_by_build_id),
	    cmocka_unit_test(another_source_is_a_miss_and_replaces),
	    cmocka_unit_test(damage_is_noticed),
	    cmocka_unit_test(only_plain_files_are_read),
	    cmocka_unit_test(a_folder_that_others_can_write_to_is_not_used),
	    cmocka_unit_test(the_longest_unused_entries_go),
	    cmocka_unit_test(the_bound_holds_without_a_look_at_each_write),
	    cmocka_unit_test(without_its_list_the_folder_is_looked_through),
	    cmocka_unit_test(nothing_is_left_behind),
	    cmocka_unit_test(the_folder_follows_the_environment),
	};

	return cmocka_run_group_tests(tests, workshop_open, workshop_close);
}
