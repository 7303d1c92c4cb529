/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "sampler/unwind/cfi.h"
#include "sampler/unwind/module.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/unit/module_scene.h"
#include "tests/unit/stranger.h"

static unsigned open_descriptors(void)
{
	unsigned n = 0;

	for (int fd = 0; fd < 4096; fd++)
		n += fcntl(fd, F_GETFD) >= 0;
	return n;
}

static void one_file_is_one_module(void **state)
{
	struct modules *store = modules_new(0);
	struct module *a = get(store, 0, "/proc/self/exe", NULL), *b;
	char other[PATH_MAX];

	assert_true(a->readable);
	assert_int_equal(a->file.build_id_len, 20);
	assert_non_null(realpath("/proc/self/exe", other));
	b = get(store, 0, other, NULL);
	assert_ptr_equal(a, b);
	module_unref(b);
	/* With the build id known the file need not even be there. */
	b = get(store, 0, "/nowhere", a);
	assert_ptr_equal(a, b);
	assert_int_equal(a->references, 2);
	assert_int_equal(modules_counters(store)->opened, 1);
	assert_int_equal(modules_open_fds(store), 1);
	module_unref(b);
	module_unref(a);
	modules_free(store);
}

/* By tools that change program headers, and keep the build id. */
static void a_build_id_is_not_all(void **state)
{
	struct modules *store = modules_new(0);
	struct module *a = get(store, 0, "/proc/self/exe", NULL), *b, *c;
	char other[256];

	copy_file("/proc/self/exe", strcpy(other, in_folder("patched")), 0);
	/* e_entry */
	int fd = open(other, O_WRONLY);
	assert_int_equal(pwrite(fd, "\x40\x10\0\0\0\0\0\0", 8, 24), 8);
	close(fd);
	b = get(store, 0, other, a);
	c = get(store, 0, other, NULL);
	assert_true(b->readable && b != a);
	assert_int_equal(b->file.entry, 0x1040);
	assert_ptr_equal(b, c);
	module_unref(a);
	module_unref(b);
	module_unref(c);
	modules_free(store);
}

/* In a container root owns all files, also those that were made up there. What its path leads to here is
 * another file; so is one that was deleted. */
static void what_is_not_installed_stands_for_itself(void **state)
{
	const size_t page_bytes = (size_t)sysconf(_SC_PAGESIZE);
	struct modules *store = modules_new(0);
	char path[256];

	if (geteuid() != 0)
		skip();
	copy_file("/proc/self/exe", strcpy(path, in_folder("forged")), 99);
	int fd = open(path, O_RDONLY);
	char *mapped = mmap(NULL, page_bytes, PROT_READ, MAP_PRIVATE, fd, 0);
	assert_ptr_not_equal(mapped, MAP_FAILED);
	struct module_request request = {
	    .pid = getpid(), .start = (uintptr_t)mapped, .end = (uintptr_t)mapped + page_bytes, .path = path};
	assert_int_equal(unlink(path), 0);
	struct module *forged = module_get(store, &request), *again = module_get(store, &request), *true_one;
	assert_true(forged->readable);
	assert_ptr_equal(forged, again);
	copy_file("/proc/self/exe", path, 99);
	true_one = get(store, 0, path, forged);
	assert_true(true_one->readable && true_one != forged);
	module_unref(true_one);
	true_one = get(store, 0, path, NULL);
	assert_true(true_one->readable && true_one != forged);
	module_unref(forged);
	module_unref(again);
	module_unref(true_one);
	modules_free(store);
	munmap(mapped, page_bytes);
	close(fd);
}

static void another_file_in_its_place(void **state)
{
	struct modules *store = modules_new(0), *second = modules_new(0);
	struct module *original = get(store, 0, "/proc/self/exe", NULL), *module;
	char path[256];

	copy_file("/proc/self/exe", strcpy(path, in_folder("replaced")), 77);
	module = get(second, 0, path, original);
	assert_false(module->readable);
	assert_int_equal(module->error, -ESTALE);
	assert_string_equal(module->path, path);
	assert_int_equal(module->file.build_id_len, 20);
	assert_int_equal(modules_counters(second)->mismatched, 1);
	assert_true(module_fd(module) == -ESTALE);
	/* The right one comes back: not held against it. */
	copy_file("/proc/self/exe", path, 0);
	struct module *again = get(second, 0, path, original);
	assert_true(again->readable && again != module);
	module_unref(again);
	module_unref(module);
	module_unref(original);
	modules_free(second);
	modules_free(store);
}

static pid_t start_copy(const char *path)
{
	int ready[2];
	char byte;

	assert_int_equal(pipe2(ready, O_CLOEXEC), 0);
	pid_t pid = fork();
	if (pid == 0) {
		execl(path, path, "100", NULL);
		_exit(1);
	}
	close(ready[1]);
	/* The pipe closes when the exec has happened. */
	assert_int_equal(read(ready[0], &byte, 1), 0);
	close(ready[0]);
	return pid;
}

static void stop(pid_t pid)
{
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
}

static void deleted_and_replaced_program(void **state)
{
	struct modules *store = modules_new(0), *plain = modules_new(0);
	char path[256], deleted[300];

	strcpy(path, in_folder("sleeper"));
	copy_file("/bin/sleep", path, 0);
	struct module *expected = get(plain, 0, path, NULL);
	pid_t pid = start_copy(path);
	unlink(path);
	copy_file("/bin/true", path, 0);
	snprintf(deleted, sizeof(deleted), "%s (deleted)", path);
	struct module *module = get(store, pid, deleted, expected);
	assert_true(module->readable);
	assert_string_equal(module->path, path);
	/* Still readable when the process is gone. */
	stop(pid);
	char magic[4];
	assert_int_equal(module_read(module, magic, 4, 0), 0);
	assert_memory_equal(magic, "\177ELF", 4);
	module_unref(module);
	module_unref(expected);
	modules_free(plain);
	modules_free(store);
}

static void program_in_another_mount_namespace(void **state)
{
	struct modules *store = modules_new(0), *plain = modules_new(0);
	int ready[2];
	char path[256], byte;

	assert_int_equal(pipe(ready), 0);
	strcpy(path, in_folder("hidden/program"));
	mkdir(in_folder("hidden"), 0755);
	pid_t pid = fork();
	if (pid == 0) {
		if (unshare(CLONE_NEWNS) < 0 || mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0 ||
		    mount("none", in_folder("hidden"), "tmpfs", 0, NULL) < 0)
			_exit(1);
		copy_file("/bin/sleep", path, 99);
		if (symlink(path, in_folder("hidden/link")) < 0 || write(ready[1], "", 1) != 1)
			_exit(1);
		pause();
	}
	close(ready[1]);
	if (read(ready[0], &byte, 1) != 1) {
		print_message("SKIPPED: no mount namespaces here\n");
		waitpid(pid, NULL, 0);
		skip();
	}
	assert_int_equal(access(path, F_OK), -1);
	struct module *module = get(store, pid, path, NULL);
	assert_true(module->readable);
	/* An absolute link is one in the process's own tree. */
	struct module *linked = get(store, pid, in_folder("hidden/link"), NULL);
	assert_ptr_equal(module, linked);
	stop(pid);
	close(ready[0]);
	module_unref(linked);
	module_unref(module);
	modules_free(plain);
	modules_free(store);
}

static void no_file_that_is_worth_reading(void **state)
{
	struct modules *store = modules_new(0);
	char fifo[256], text[256];
	static const char *const others[] = {"/dev/zero", "/dev/tty", "/", "/nonexistent", "/etc/passwd", ""};

	strcpy(fifo, in_folder("fifo"));
	strcpy(text, in_folder("short"));
	assert_int_equal(mkfifo(fifo, 0600), 0);
	copy_file("/bin/true", text, 0);
	assert_int_equal(truncate(text, 100), 0);
	/* A blocking open would hang here; alarm() makes that a failure. */
	alarm(20);
	for (size_t i = 0; i < sizeof(others) / sizeof(others[0]) + 2; i++) {
		const char *path = i == 0 ? fifo : i == 1 ? text : others[i - 2];
		struct module *module = get(store, getpid(), path, NULL);

		assert_non_null(module);
		assert_false(module->readable);
		assert_true(module->error < 0);
		uint64_t vaddr;
		assert_true(module_vaddr(module, 0x123, true, &vaddr) && vaddr == 0x123);
		module_unref(module);
	}
	alarm(0);
	assert_int_equal(modules_count(store), 0);
	modules_free(store);
}

static void few_descriptors(void **state)
{
	enum { FILES = 40 };
	struct modules *store = modules_new(8);
	struct module *module[FILES];
	char name[32];

	for (uint32_t i = 0; i < FILES; i++) {
		snprintf(name, sizeof(name), "few%u", i);
		copy_file("/bin/true", in_folder(name), i + 1000);
		module[i] = get(store, 0, in_folder(name), NULL);
		assert_true(module[i]->readable);
		assert_true(modules_open_fds(store) <= 8);
	}
	for (uint32_t i = 0; i < FILES; i++) {
		uint32_t serial;

		assert_int_equal(module_fd(module[i]) >= 0, 1);
		uint8_t notes[4096];
		assert_int_equal(module_read(module[i], notes, sizeof(notes), 0), 0);
		memcpy(&serial, module[i]->file.build_id, sizeof(serial));
		assert_int_equal(serial, i + 1000);
		assert_non_null(memmem(notes, sizeof(notes), module[i]->file.build_id, 20));
		assert_true(modules_open_fds(store) <= 8);
	}
	assert_true(modules_counters(store)->descriptors_dropped >= FILES - 8);
	/* A file that is gone keeps its descriptor, whoever else needs one. */
	module_fd(module[0]);
	unlink(module[0]->path);
	for (uint32_t i = 1; i < FILES; i++)
		assert_true(module_fd(module[i]) >= 0);
	assert_true(module[0]->file.fd >= 0);
	for (uint32_t i = 0; i < FILES; i++)
		module_unref(module[i]);
	modules_free(store);
}

static void no_descriptors(void **state)
{
	struct modules *store = modules_new(0);
	struct rlimit old, none;
	char path[256];

	copy_file("/bin/true", strcpy(path, in_folder("none")), 5);
	getrlimit(RLIMIT_NOFILE, &old);
	none = (struct rlimit){0, old.rlim_max};
	setrlimit(RLIMIT_NOFILE, &none);
	struct module *module = get(store, 0, path, NULL);
	setrlimit(RLIMIT_NOFILE, &old);
	assert_false(module->readable);
	assert_int_equal(module->error, -EMFILE);
	assert_int_equal(modules_counters(store)->descriptors_short, 1);
	module_unref(module);
	module = get(store, 0, path, NULL);
	assert_true(module->readable);
	module_unref(module);
	modules_free(store);
}

extern const char __ehdr_start[]; /* the linker's: where the file's first byte is mapped */

/* What could not be read for want of a descriptor is read when there is one. */
static void a_row_is_found_when_its_file_is_again(void **state)
{
	struct modules *store = modules_new(1);
	char path[256], away[256];

	copy_file("/proc/self/exe", strcpy(path, in_folder("rows")), 78);
	strcpy(away, in_folder("rows.away"));
	struct module *module = get(store, 0, path, NULL), *other;
	/* of a function, as the file is mapped: the next address might be of no function */
	uint64_t vaddr = module->file.segments[0].vaddr + (uintptr_t)copy_file - (uintptr_t)__ehdr_start;
	/* Takes the only descriptor. */
	other = get(store, 0, "/bin/true", NULL);
	assert_true(other->readable && module->file.fd < 0);
	assert_int_equal(rename(path, away), 0);
	assert_ptr_equal(module_rule(module, vaddr), &cfi_unread_rule);
	assert_int_equal(rename(away, path), 0);
	assert_int_equal(module_rule(module, vaddr)->kind, CFI_SIMPLE);
	module_unref(module);
	module_unref(other);
	modules_free(store);
}

static void a_thousand_programs_leave_nothing_behind(void **state)
{
	struct modules *store = modules_new(0);
	unsigned before = open_descriptors();
	char path[256];

	strcpy(path, in_folder("many"));
	for (uint32_t i = 0; i < 1000; i++) {
		unlink(path);
		copy_file("/bin/true", path, i + 1);
		struct module *module = get(store, 0, path, NULL);
		assert_true(module->readable);
		module_rule(module, module->file.segments[1].vaddr);
		module_unref(module);
		assert_true(modules_count(store) <= MODULE_CACHED_DEFAULT);
	}
	assert_true(open_descriptors() <= before + MODULE_CACHED_DEFAULT);
	assert_int_equal(modules_counters(store)->released, 1000 - MODULE_CACHED_DEFAULT);
	modules_free(store);
	assert_int_equal(open_descriptors(), before);
}

static void offsets_and_addresses(void **state)
{
	struct module_segment segments[] = {
	    {.vaddr = 0x400000, .offset = 0, .file_bytes = 0x1a10, .memory_bytes = 0x1a10},
	    {.vaddr = 0x403a10,
	        .offset = 0x1a10,
	        .file_bytes = 0x2000,
	        .memory_bytes = 0x2000,
	        .executable = true},
	    {.vaddr = 0x805a10, .offset = 0x3a10, .file_bytes = 0x100, .memory_bytes = 0x5000},
	};
	struct module_file file = {.segment_count = 3, .segments = segments};
	uint64_t vaddr;

	assert_true(module_file_vaddr(&file, 0, true, &vaddr) && vaddr == 0x400000);
	/* The page that two segments share belongs to each. */
	assert_true(module_file_vaddr(&file, 0x1000, true, &vaddr) && vaddr == 0x403000);
	assert_true(module_file_vaddr(&file, 0x1000, false, &vaddr) && vaddr == 0x401000);
	assert_true(module_file_vaddr(&file, 0x3000, true, &vaddr) && vaddr == 0x405000);
	assert_false(module_file_vaddr(&file, 0x4000, true, &vaddr));
}

static void the_vdso(void **state)
{
	struct modules *store = modules_new(0);
	struct module *a = module_get_vdso(store), *b;
	char magic[4];

	if (!a)
		skip();
	b = module_get_vdso(store);
	assert_ptr_equal(a, b);
	assert_int_equal(module_read(a, magic, 4, 0), 0);
	assert_memory_equal(magic, "\177ELF", 4);
	assert_int_equal(module_read(a, magic, 4, a->file.bytes - 3), -EIO);
	module_unref(a);
	module_unref(b);
	modules_free(store);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(one_file_is_one_module),
	    cmocka_unit_test(a_build_id_is_not_all),
	    cmocka_unit_test(what_is_not_installed_stands_for_itself),
	    cmocka_unit_test(another_file_in_its_place),
	    cmocka_unit_test(deleted_and_replaced_program),
	    cmocka_unit_test(program_in_another_mount_namespace),
	    cmocka_unit_test(no_file_that_is_worth_reading),
	    cmocka_unit_test(few_descriptors),
	    cmocka_unit_test(no_descriptors),
	    cmocka_unit_test(a_row_is_found_when_its_file_is_again),
	    cmocka_unit_test(a_thousand_programs_leave_nothing_behind),
	    cmocka_unit_test(offsets_and_addresses),
	    cmocka_unit_test(the_vdso),
	};

	return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
