/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Of a process that has ended, or executes another program by now, its own word is all there is: which file a
 * path means must be told by the file.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "sampler/unwind/maps.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

static const char program[] = "/proc/self/exe"; /* this one */

static struct stat status_of(const char *path)
{
	struct stat status;

	assert_int_equal(stat(path, &status), 0);
	return status;
}

/* The module of a path that a process tells of: readable or not. */
static bool is_read(struct module_request request)
{
	struct modules *store = modules_new(0);

	request.told = true;
	request.listed = true;
	struct module *module = module_get(store, &request);
	const bool readable = module->readable;
	assert_true(readable || module->error < 0);
	module_unref(module);
	modules_free(store);
	return readable;
}

static void a_path_alone_is_no_file(void **state)
{
	char path[4096];
	const ssize_t length = readlink(program, path, sizeof(path) - 1);

	(void)state;
	assert_true(length > 0);
	path[length] = '\0';
	const struct stat own = status_of(path);
	assert_false(is_read((struct module_request){.path = path}));
	assert_false(is_read((struct module_request){.path = path, .pid = getpid()}));
	assert_true(is_read((struct module_request){.path = path, .dev = own.st_dev, .ino = own.st_ino}));
	assert_false(
	    is_read((struct module_request){.path = path, .dev = own.st_dev, .ino = own.st_ino + 1}));
	/* Two file systems have each their file of that number. */
	assert_false(
	    is_read((struct module_request){.path = path, .dev = own.st_dev + 1, .ino = own.st_ino}));
}

/* By a link of the kernel's, a path means a file of who follows it: not the one that is told of, even if it
 * should be the same one. */
static void a_link_of_the_kernels_is_not_followed(void **state)
{
	const struct stat own = status_of(program);
	char descriptor[64], link[] = "/tmp/heaptap-listed.XXXXXX";
	const int fd = open(program, O_RDONLY | O_CLOEXEC);

	(void)state;
	snprintf(descriptor, sizeof(descriptor), "/dev/fd/%d", fd);
	assert_non_null(mkdtemp(link));
	assert_int_equal(rmdir(link), 0);
	assert_int_equal(symlink(program, link), 0);
	const char *paths[] = {program, "/proc/thread-self/exe", descriptor, link};
	for (size_t i = 0; i < sizeof(paths) / sizeof(paths[0]); i++) {
		assert_false(
		    is_read((struct module_request){.path = paths[i], .dev = own.st_dev, .ino = own.st_ino}));
	}
	assert_int_equal(unlink(link), 0);
	close(fd);
}

/* What is in the list is a file, whatever its path looks like, and no code made at run time. */
static void what_is_listed_is_a_file(void **state)
{
	static const char *const paths[] = {"./server", "dir/server", "server", "/memfd:server (deleted)"};
	struct modules *store = modules_new(0);
	struct maps *maps = maps_new(store, 0, true);

	(void)state;
	for (size_t i = 0; i < sizeof(paths) / sizeof(paths[0]); i++) {
		const struct map_range range = {.start = 0x1000,
		    .len = 0x1000,
		    .prot = PROT_READ | PROT_EXEC,
		    .path = paths[i],
		    .listed = true};

		assert_int_equal(maps_add(maps, &range), 0);
		const struct map *map = maps_module(maps, 0x1800);
		assert_int_equal(map->kind, MAP_KIND_FILE);
		assert_false(map->module->readable);
	}
	maps_free(maps);
	modules_free(store);
}

/* From the folder in which it was opened, if that is ours. */
static void a_relative_path_is_verified(void **state)
{
	const struct stat own = status_of(program);
	char path[4096], *name;
	struct modules *store = modules_new(0);
	struct maps *maps = maps_new(store, 0, true);

	(void)state;
	const ssize_t length = readlink(program, path, sizeof(path) - 1);
	assert_true(length > 0);
	path[length] = '\0';
	name = strrchr(path, '/');
	*name++ = '\0';
	assert_int_equal(chdir(path), 0);
	for (uint64_t other = 0; other < 2; other++) {
		const struct map_range range = {.start = 0x1000,
		    .len = 0x1000,
		    .prot = PROT_READ | PROT_EXEC,
		    .path = name,
		    .major = major(own.st_dev),
		    .minor = minor(own.st_dev),
		    .ino = own.st_ino + other,
		    .listed = true};

		assert_int_equal(maps_add(maps, &range), 0);
		assert_int_equal(maps_module(maps, 0x1800)->module->readable, !other);
	}
	maps_free(maps);
	modules_free(store);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(a_path_alone_is_no_file),
	    cmocka_unit_test(a_link_of_the_kernels_is_not_followed),
	    cmocka_unit_test(what_is_listed_is_a_file),
	    cmocka_unit_test(a_relative_path_is_verified),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
