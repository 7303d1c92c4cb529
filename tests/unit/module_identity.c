/* SPDX-License-Identifier: Apache-2.0 */
/* Which module stands for which file, where containers have files with the same path or build id. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <sched.h>
#include <sys/mount.h>

#include "tests/unit/module_scene.h"
#include "tests/unit/stranger.h"

/* ---- containers: all have files with the same build id, and what is in `shared` has one path for all */

enum { LIBRARY = 99 };

struct paths {
	char shared[256], here[256], contained[256], jail[256];
};

/* In mounts of its own there is a file that nobody else sees. */
static void be_a_container(int fd, void *argument)
{
	const struct paths *paths = argument;
	char byte = !(unshare(CLONE_NEWNS) == 0 && mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) == 0 &&
	    mount("none", in_folder("own"), "tmpfs", 0, NULL) == 0);

	if (!byte)
		copy_file("/proc/self/exe", paths->contained, LIBRARY);
	if (write(fd, &byte, 1) == 1)
		(void)!read(fd, &byte, 1);
}

/* In a root folder of its own a file of ours has the path that it has here. */
static void be_in_jail(int fd, void *argument)
{
	const struct paths *paths = argument;
	char command[2048], byte;

	snprintf(command, sizeof(command), "mkdir -p %s%s && ln %s %s%s", paths->jail, folder, paths->here,
	    paths->jail, paths->here);
	byte = !(system(command) == 0 && chroot(paths->jail) == 0);
	if (write(fd, &byte, 1) == 1)
		(void)!read(fd, &byte, 1);
}

static struct stranger start_elsewhere(void (*body)(int fd, void *argument), struct paths *paths)
{
	struct stranger target = stranger_start(body, paths);
	char byte = 1;

	assert_int_equal(read(target.fd, &byte, 1), 1);
	if (byte == 0)
		return target;
	stranger_end(&target);
	print_message("no mount namespaces or root folders can be made here\n");
	skip();
	return target;
}

static void make_libraries(struct paths *paths)
{
	if (geteuid() != 0)
		skip();
	strcpy(paths->shared, in_folder("shared"));
	strcpy(paths->here, in_folder("here"));
	strcpy(paths->contained, in_folder("own/library"));
	strcpy(paths->jail, in_folder("jail"));
	(void)mkdir(in_folder("own"), 0755);
	(void)unlink(paths->here);
	copy_file("/proc/self/exe", paths->here, LIBRARY);
	copy_file("/proc/self/exe", paths->shared, LIBRARY);
}

/* Its root could write what it likes to a folder that it shares with the machine. */
static void a_container_names_nothing_of_others(void **state)
{
	struct modules *store = modules_new(0);
	struct paths paths;

	(void)state;
	make_libraries(&paths);
	struct stranger container = start_elsewhere(be_a_container, &paths);
	struct stranger other = start_elsewhere(be_a_container, &paths);
	struct module *forged = get(store, container.pid, paths.shared, NULL);
	struct module *of_other = get(store, other.pid, paths.contained, forged);
	struct module *ours = get(store, getpid(), paths.here, NULL);
	assert_true(forged->readable && of_other->readable && ours->readable);
	assert_ptr_not_equal(forged, of_other);
	assert_ptr_not_equal(forged, ours);
	module_unref(forged);
	module_unref(of_other);
	module_unref(ours);
	stranger_end(&container);
	stranger_end(&other);
	modules_free(store);
}

static void a_root_folder_of_its_own_is_a_container_too(void **state)
{
	struct modules *store = modules_new(0);
	struct paths paths;

	(void)state;
	make_libraries(&paths);
	struct stranger jailed = start_elsewhere(be_in_jail, &paths);
	struct stranger other = start_elsewhere(be_a_container, &paths);
	struct module *forged = get(store, jailed.pid, paths.here, NULL);
	struct module *of_other = get(store, other.pid, paths.contained, NULL);
	assert_true(forged->readable && of_other->readable);
	assert_ptr_not_equal(forged, of_other);
	module_unref(forged);
	module_unref(of_other);
	stranger_end(&jailed);
	stranger_end(&other);
	modules_free(store);
}

/* Of a process that was gone at the first look nothing is known but what it has said. */
static void nor_does_who_only_told_a_path(void **state)
{
	struct modules *store = modules_new(0);
	struct paths paths;

	(void)state;
	make_libraries(&paths);
	struct stranger other = start_elsewhere(be_a_container, &paths);
	const struct module_request request = {.path = paths.shared, .told = true};
	struct module *forged = module_get(store, &request);
	struct module *of_other = get(store, other.pid, paths.contained, NULL);
	assert_true(forged->readable && of_other->readable);
	assert_ptr_not_equal(forged, of_other);
	module_unref(forged);
	module_unref(of_other);
	stranger_end(&other);
	modules_free(store);
}

static void what_is_installed_stands_for_what_is_not(void **state)
{
	struct modules *store = modules_new(0);
	struct paths paths;

	(void)state;
	make_libraries(&paths);
	struct stranger container = start_elsewhere(be_a_container, &paths);
	/* also if the first that mapped it has mounts of its own */
	struct module *first = get(store, container.pid, paths.here, NULL);
	struct module *ours = get(store, getpid(), paths.here, NULL);
	struct module *contained = get(store, container.pid, paths.contained, NULL);
	struct module *lost = get(store, container.pid, "/nowhere", ours);
	assert_true(ours->readable);
	assert_ptr_equal(first, ours);
	assert_ptr_equal(contained, ours);
	assert_ptr_equal(lost, ours);
	module_unref(first);
	module_unref(ours);
	module_unref(contained);
	module_unref(lost);
	stranger_end(&container);
	modules_free(store);
}

/* Who writes to a folder that all share may have somebody here who maps it. */
static void what_is_installed_stands_for_itself(void **state)
{
	struct modules *store = modules_new(0);
	struct paths paths;

	(void)state;
	make_libraries(&paths);
	struct module *forged = get(store, getpid(), paths.shared, NULL);
	struct module *ours = get(store, getpid(), paths.here, NULL);
	struct module *named = get(store, getpid(), paths.here, forged);
	struct module *again = get(store, getpid(), paths.shared, ours);
	assert_true(forged->readable && ours->readable);
	assert_ptr_not_equal(forged, ours);
	assert_ptr_equal(named, ours);
	assert_ptr_equal(again, forged);
	/* also where there is no such file any more */
	assert_int_equal(unlink(paths.shared), 0);
	struct module *lost = get(store, getpid(), paths.shared, ours);
	assert_ptr_equal(lost, forged);
	module_unref(lost);
	module_unref(forged);
	module_unref(ours);
	module_unref(named);
	module_unref(again);
	modules_free(store);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(a_container_names_nothing_of_others),
	    cmocka_unit_test(a_root_folder_of_its_own_is_a_container_too),
	    cmocka_unit_test(nor_does_who_only_told_a_path),
	    cmocka_unit_test(what_is_installed_stands_for_what_is_not),
	    cmocka_unit_test(what_is_installed_stands_for_itself),
	};

	return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
