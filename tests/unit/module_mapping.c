/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What is mapped in a range need not be what was announced there: a library that was unloaded leaves its
 * range to the next, and we look when it is our turn.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "sampler/unwind/module.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

static char folder[] = "/tmp/heaptap-mapping.XXXXXX";
static char first[64], second[64];

static void copy_program(const char *to)
{
	char command[128];

	snprintf(command, sizeof(command), "cp /proc/%d/exe %s", (int)getpid(), to);
	assert_int_equal(system(command), 0);
}

static struct stat status_of(const char *path)
{
	struct stat status;

	assert_int_equal(stat(path, &status), 0);
	return status;
}

/* A request for `path` in a range where the file `mapped` is; the caller unmaps it. */
static struct module_request request_for(const char *path, const struct stat *announced, const char *mapped)
{
	if (geteuid() != 0)
		skip(); /* /proc/PID/map_files is root's */
	int fd = open(mapped, O_RDONLY | O_CLOEXEC);
	/* The name in map_files has the end of the range, which is that of a page. */
	const size_t page_bytes = (size_t)sysconf(_SC_PAGESIZE);
	char *range = mmap(NULL, page_bytes, PROT_READ, MAP_PRIVATE, fd, 0);

	assert_ptr_not_equal(range, MAP_FAILED);
	close(fd);
	return (struct module_request){
	    .pid = getpid(),
	    .told = true,
	    .start = (uintptr_t)range,
	    .end = (uintptr_t)range + page_bytes,
	    .path = path,
	    .dev = announced->st_dev,
	    .ino = announced->st_ino,
	};
}

/* The inode of the file that is found for `request`; 0: none is, since all are others. */
static ino_t inode_found(const struct module_request *request)
{
	struct modules *store = modules_new(0);
	struct module *module = module_get(store, request);
	ino_t inode = module->readable ? module->file.ino : 0;

	if (!inode)
		assert_int_equal(module->error, -ESTALE);
	module_unref(module);
	modules_free(store);
	return inode;
}

static void drop(const struct module_request *request)
{
	assert_int_equal(munmap((void *)(uintptr_t)request->start, request->end - request->start), 0);
}

static void the_next_in_the_range(void **state)
{
	(void)state;
	const struct stat announced = status_of(first);
	const struct module_request request = request_for(first, &announced, second);

	assert_true(inode_found(&request) == announced.st_ino);
	assert_int_equal(unlink(first), 0);
	assert_true(inode_found(&request) == 0);
	drop(&request);
}

/* A plugin that was built again has its path, and mostly its range. */
static void the_next_of_its_path(void **state)
{
	(void)state;
	const struct stat announced = status_of(first);

	assert_int_equal(rename(second, first), 0);
	const struct module_request request = request_for(first, &announced, first);
	assert_true(inode_found(&request) == 0);
	drop(&request);
}

static void a_file_that_has_moved(void **state)
{
	(void)state;
	const struct stat announced = status_of(first);
	const struct module_request request = request_for(first, &announced, first);

	assert_int_equal(rename(first, second), 0);
	assert_true(inode_found(&request) == announced.st_ino);
	drop(&request);
}

/* On overlayfs maps tells the device and the inode of a layer. */
static void a_device_that_maps_does_not_tell(void **state)
{
	(void)state;
	const struct stat mapped = status_of(second);
	const struct stat layer = {.st_dev = mapped.st_dev + 1, .st_ino = mapped.st_ino + 1000000};
	char longer[128], deleted[128];
	struct module_request request = request_for(second, &layer, second);

	assert_true(inode_found(&request) == mapped.st_ino);
	request.path = strrchr(second, '/'); /* of a process in a root folder */
	assert_true(inode_found(&request) == mapped.st_ino);
	snprintf(longer, sizeof(longer), "/mounted%s", second);
	request.path = longer;
	assert_true(inode_found(&request) == mapped.st_ino);
	request.path = first;
	assert_true(inode_found(&request) == 0);
	assert_int_equal(unlink(second), 0);
	snprintf(deleted, sizeof(deleted), "%s (deleted)", second);
	request.path = deleted;
	assert_true(inode_found(&request) == mapped.st_ino);
	drop(&request);
}

/* Without anything but a path (a list that was kept) the path decides. */
static void a_path_alone(void **state)
{
	(void)state;
	const struct stat nothing = {.st_ino = 0}, one = status_of(first), other = status_of(second);
	struct module_request request = request_for(second, &nothing, second);

	assert_true(inode_found(&request) == other.st_ino);
	request.path = first;
	assert_true(inode_found(&request) == one.st_ino);
	drop(&request);
}

static int make_files(void **state)
{
	(void)state;
	copy_program(first);
	copy_program(second);
	return 0;
}

static int remove_files(void **state)
{
	(void)state;
	(void)unlink(first);
	(void)unlink(second);
	return 0;
}

static int make_folder(void **state)
{
	(void)state;
	if (!mkdtemp(folder))
		return -1;
	snprintf(first, sizeof(first), "%s/first.so", folder);
	snprintf(second, sizeof(second), "%s/second.so", folder);
	return 0;
}

static int remove_folder(void **state)
{
	(void)state;
	return rmdir(folder);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test_setup_teardown(the_next_in_the_range, make_files, remove_files),
	    cmocka_unit_test_setup_teardown(the_next_of_its_path, make_files, remove_files),
	    cmocka_unit_test_setup_teardown(a_file_that_has_moved, make_files, remove_files),
	    cmocka_unit_test_setup_teardown(a_device_that_maps_does_not_tell, make_files, remove_files),
	    cmocka_unit_test_setup_teardown(a_path_alone, make_files, remove_files),
	};

	return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
