/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A program maps as many files as it likes, all with one build id, one inode or one name if it likes: finding
 * each costs no more for that. What it costs is counted in entries of the store that are looked at.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "sampler/unwind/module.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum {
	FILES = 3000,
	LOOKS_MAX = 200, /* entries, for one file; all of them are 3,000 */
	DESCRIPTORS = 16,
};

static char folder[] = "/tmp/heaptap-module-crowd.XXXXXX";

struct program_run {
	Elf64_Ehdr header;
	Elf64_Phdr load, note;
	Elf64_Nhdr build_id;
	char name[4];
	uint8_t id[20];
};

static const char *path_of(unsigned i)
{
	static char path[sizeof(folder) + 16];

	snprintf(path, sizeof(path), "%s/%u", folder, i);
	return path;
}

static struct program_run run_of(unsigned i)
{
	const uint16_t machine = regs_arch_native()->e_machine;
	struct program_run run = {
	    .header = {.e_ident = {ELFMAG0, ELFMAG1, ELFMAG2, ELFMAG3, ELFCLASS64, ELFDATA2LSB, EV_CURRENT},
	        .e_type = ET_DYN,
	        .e_machine = machine,
	        .e_version = EV_CURRENT,
	        .e_entry = i,
	        .e_phoff = offsetof(struct program_run, load),
	        .e_ehsize = sizeof(Elf64_Ehdr),
	        .e_phentsize = sizeof(Elf64_Phdr),
	        .e_phnum = 2},
	    .load = {.p_type = PT_LOAD,
	        .p_flags = PF_R | PF_X,
	        .p_filesz = sizeof(run),
	        .p_memsz = sizeof(run),
	        .p_align = 4096},
	    .note = {.p_type = PT_NOTE,
	        .p_offset = offsetof(struct program_run, build_id),
	        .p_filesz = sizeof(run) - offsetof(struct program_run, build_id),
	        .p_align = 4},
	    .build_id = {.n_namesz = 4, .n_descsz = 20, .n_type = NT_GNU_BUILD_ID},
	    .name = "GNU",
	};

	memset(run.id, 0xab, sizeof(run.id));
	return run;
}

static void write_file(const char *path, const struct program_run *run)
{
	int fd = open(path, O_CREAT | O_WRONLY | O_CLOEXEC, 0755);

	assert_true(fd >= 0);
	assert_int_equal(pwrite(fd, run, sizeof(*run), 0), sizeof(*run));
	assert_int_equal(close(fd), 0);
}

static struct module *get(struct modules *store, const char *path, uint64_t ino)
{
	const struct module_request request = {.path = path, .ino = ino};
	struct module *module = module_get(store, &request);

	assert_non_null(module);
	return module;
}

static void expect_few_looks(struct modules *store, uint64_t *before)
{
	const uint64_t now = modules_counters(store)->looked_at;

	assert_in_range(now - *before, 0, LOOKS_MAX);
	*before = now;
}

static void one_build_id(void **state)
{
	static struct module *module[FILES];
	struct modules *store = modules_new(0);
	uint64_t looks = 0;

	(void)state;
	for (unsigned i = 0; i < FILES; i++) {
		const struct program_run run = run_of(i);

		write_file(path_of(i), &run);
		module[i] = get(store, path_of(i), 0);
		assert_true(module[i]->readable);
		assert_int_equal(module[i]->file.build_id_len, 20);
		assert_int_equal(module[i]->file.entry, i);
		expect_few_looks(store, &looks);
	}
	assert_int_equal(modules_count(store), FILES);
	/* Each is found again, also by whoever looks for that build id. */
	for (unsigned i = 0; i < FILES; i++) {
		const struct module_request request = {
		    .path = path_of(i), .build_id = module[0]->file.build_id, .build_id_len = 20};
		struct module *again = module_get(store, &request);

		assert_ptr_equal(again, module[i]);
		module_unref(again);
		expect_few_looks(store, &looks);
	}
	for (unsigned i = 0; i < FILES; i++) {
		module_unref(module[i]);
		expect_few_looks(store, &looks);
	}
	assert_int_equal(modules_count(store), MODULE_CACHED_DEFAULT);
	modules_free(store);
}

/* Until the kernel's clock for that, of 4 ms before Linux 6.13, has another time of change. */
static void write_anew(const char *path, const struct program_run *run)
{
	const struct timespec times[2] = {{.tv_sec = 1000}, {.tv_sec = 1000}};
	struct stat before = {0}, now;

	(void)stat(path, &before);
	do {
		write_file(path, run);
		assert_int_equal(utimensat(AT_FDCWD, path, times, 0), 0);
		assert_int_equal(stat(path, &now), 0);
	} while (
	    now.st_ctim.tv_sec == before.st_ctim.tv_sec && now.st_ctim.tv_nsec == before.st_ctim.tv_nsec);
}

/* With one length and one time of modification. */
static void one_inode(void **state)
{
	enum { TIMES = 2 * LOOKS_MAX };
	static struct module *module[TIMES];
	struct modules *store = modules_new(0);
	uint64_t looks = 0;

	(void)state;
	for (unsigned i = 0; i < TIMES; i++) {
		const struct program_run run = run_of(FILES + i);

		write_anew(path_of(0), &run);
		module[i] = get(store, path_of(0), 0);
		assert_true(module[i]->readable);
		expect_few_looks(store, &looks);
	}
	assert_int_equal(modules_count(store), TIMES);
	for (unsigned i = 0; i < TIMES; i++)
		module_unref(module[i]);
	modules_free(store);
}

static void one_name_of_what_cannot_be_read(void **state)
{
	static struct module *module[FILES];
	struct modules *store = modules_new(0);
	uint64_t looks = 0;

	(void)state;
	for (unsigned i = 0; i < FILES; i++) {
		module[i] = get(store, "/nowhere/at all", i + 1);
		assert_false(module[i]->readable);
		expect_few_looks(store, &looks);
	}
	assert_int_equal(modules_count(store), FILES);
	const uint64_t added = looks;
	for (unsigned i = 0; i < FILES; i++) {
		struct module *again = get(store, "/nowhere/at all", i + 1);

		assert_ptr_equal(again, module[i]);
		module_unref(again);
		expect_few_looks(store, &looks);
		module_unref(module[i]);
	}
	assert_in_range(looks - added, FILES, 2 * FILES); /* there are buckets enough */
	assert_int_equal(modules_count(store), 0);
	modules_free(store);
}

/* Those whose file is gone keep their descriptor, and are not asked each time. */
static void few_descriptors(void **state)
{
	enum { GONE = 300 };
	static struct module *module[FILES];
	struct modules *store = modules_new(DESCRIPTORS);
	uint64_t looks = 0;

	(void)state;
	for (unsigned i = 0; i < FILES; i++) {
		struct program_run run = run_of(i);

		memcpy(run.id, &i, sizeof(i));
		unlink(path_of(i));
		write_file(path_of(i), &run);
		module[i] = get(store, path_of(i), 0);
		assert_true(module[i]->readable);
		expect_few_looks(store, &looks);
		if (i < GONE)
			unlink(path_of(i));
	}
	assert_true(modules_open_fds(store) >= GONE);
	for (unsigned i = 0; i < FILES; i++) {
		assert_true(module_fd(module[i]) >= 0);
		expect_few_looks(store, &looks);
	}
	for (unsigned i = 0; i < FILES; i++) {
		module_unref(module[i]);
		expect_few_looks(store, &looks);
	}
	modules_free(store);
}

static int make_folder(void **state)
{
	(void)state;
	return mkdtemp(folder) ? 0 : -1;
}

static int remove_folder(void **state)
{
	(void)state;
	for (unsigned i = 0; i < FILES; i++)
		unlink(path_of(i));
	return rmdir(folder);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(one_build_id),
	    cmocka_unit_test(one_inode),
	    cmocka_unit_test(one_name_of_what_cannot_be_read),
	    cmocka_unit_test(few_descriptors),
	};

	return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
