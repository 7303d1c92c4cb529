/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <elfutils/libdwelf.h>

#include "sampler/symbol/debuginfo.h"
#include "tests/unit/workshop.h"

/* In the folder: prog (stripped, with a link), prog.debug; other and other.debug of the same source. */
static int build_twins(void **state)
{
	static const char *const names[] = {"prog", "other"};
	struct workshop *shop;

	if (workshop_open(state) != 0)
		return -1;
	shop = *state;
	if (!workshop_write(
	        shop, "a.c", "int work(int x) { return x * VALUE; }\nint main(void) { return work(2); }\n"))
		return -1;
	for (int i = 0; i < 2; i++)
		for (int id = 0; id < 2; id++)
			if (workshop_run(shop,
			        "n=%s%s && gcc -g -O1 -DVALUE=%d -Wl,--build-id=%s a.c -o full && "
			        "objcopy --only-keep-debug full $n.debug && strip -o $n full && "
			        "objcopy --add-gnu-debuglink=$n.debug $n && mkdir -p kept && mv $n.debug "
			        "kept/",
			        names[i], id ? "" : ".noid", i + 3, id ? "sha1" : "none") != 0)
				return -1;
	elf_version(EV_CURRENT);
	return 0;
}

/* The size of the debug file that is found for ./PROGRAM; -1: none. */
static off_t find(const struct workshop *shop, const char *program, bool debuginfod)
{
	const char *path = workshop_path(shop, program);
	int fd = open(path, O_RDONLY | O_CLOEXEC), found;
	Elf *elf = elf_begin(fd, ELF_C_READ, NULL);
	const void *id = NULL;
	ssize_t id_bytes = dwelf_elf_gnu_build_id(elf, &id);
	struct debuginfo_query query = {.elf = elf,
	    .path = path,
	    .build_id = id,
	    .build_id_bytes = id_bytes > 0 ? (size_t)id_bytes : 0,
	    .root = workshop_path(shop, "root"),
	    .debuginfod = debuginfod};
	struct stat status = {.st_size = -1};

	found = debuginfo_open(&query);
	if (found >= 0) {
		fstat(found, &status);
		close(found);
	} else {
		assert_int_equal(found, -ENOENT);
	}
	elf_end(elf);
	close(fd);
	return status.st_size;
}

static off_t size_of(const struct workshop *shop, const char *name)
{
	struct stat status = {.st_size = -2};

	stat(workshop_path(shop, name), &status);
	return status.st_size;
}

/* Puts a debug file to where the build id of ./prog says. */
static void put_by_build_id(const struct workshop *shop, const char *file)
{
	assert_int_equal(workshop_run(shop,
	                     "id=$(readelf -n prog | sed -n 's/.*Build ID: //p') && "
	                     "rm -rf root && mkdir -p root/.build-id/${id%%${id#??}} && "
	                     "cp -a %s root/.build-id/${id%%${id#??}}/${id#??}.debug",
	                     file),
	    0);
}

static void the_build_id_leads_to_it(void **state)
{
	put_by_build_id(*state, "kept/prog.debug");
	assert_int_equal(find(*state, "prog", false), size_of(*state, "kept/prog.debug"));
	assert_int_equal(find(*state, "other", false), -1);
}

static void what_has_another_build_id_is_refused(void **state)
{
	put_by_build_id(*state, "kept/other.debug");
	assert_int_equal(find(*state, "prog", false), -1);
	put_by_build_id(*state, "kept/prog.noid.debug");
	assert_int_equal(find(*state, "prog", false), -1);
	put_by_build_id(*state, "a.c");
	assert_int_equal(find(*state, "prog", false), -1);
}

static void the_link_leads_to_it_in_three_places(void **state)
{
	static const char *const places[] = {"$PWD", "$PWD/.debug", "root/$PWD"};

	for (int id = 0; id < 2; id++) {
		const char *name = id ? "prog" : "prog.noid";

		for (int i = 0; i < 3; i++) {
			assert_int_equal(
			    workshop_run(*state, "rm -rf root; mkdir -p %s && cp kept/%s.debug %s/",
			        places[i], name, places[i]),
			    0);
			assert_int_equal(find(*state, name, false),
			    size_of(*state, id ? "kept/prog.debug" : "kept/prog.noid.debug"));
			assert_int_equal(workshop_run(*state, "rm -f %s/%s.debug", places[i], name), 0);
			assert_int_equal(find(*state, name, false), -1);
		}
	}
}

static void a_wrong_checksum_is_refused(void **state)
{
	assert_int_equal(workshop_run(*state, "cp kept/other.noid.debug prog.noid.debug"), 0);
	assert_int_equal(find(*state, "prog.noid", false), -1);
	assert_int_equal(workshop_run(*state, "cp kept/prog.noid.debug . && printf x >>prog.noid.debug"), 0);
	assert_int_equal(find(*state, "prog.noid", false), -1);
	assert_int_equal(workshop_run(*state, "cp kept/prog.noid.debug ."), 0);
	assert_int_equal(find(*state, "prog.noid", false), size_of(*state, "kept/prog.noid.debug"));
	assert_int_equal(workshop_run(*state, "rm prog.noid.debug"), 0);
}

/* Opening a FIFO would wait for ever. */
static void only_plain_files_are_opened(void **state)
{
	assert_int_equal(workshop_run(*state, "mkfifo prog.debug && mkdir -p .debug/prog.debug"), 0);
	assert_int_equal(find(*state, "prog", false), -1);
	assert_int_equal(workshop_run(*state, "rm -r prog.debug .debug"), 0);
}

static void a_link_does_not_leave_its_folder(void **state)
{
	assert_int_equal(workshop_run(*state,
	                     "mkdir -p sub && cp prog sub/walk && cp kept/prog.debug . && "
	                     "printf '../prog.debug\\0\\0\\0\\0\\0\\0\\0' >link && "
	                     "objcopy --update-section .gnu_debuglink=link sub/walk"),
	    0);
	assert_int_equal(find(*state, "sub/walk", false), -1);
	assert_int_equal(workshop_run(*state, "rm prog.debug"), 0);
}

static void servers_are_asked_only_on_request(void **state)
{
	struct workshop *shop = *state;
	char url[128];

	if (!workshop_has("ldconfig") || system("ldconfig -p | grep -q libdebuginfod.so.1") != 0) {
		print_message("# libdebuginfod is not installed\n");
		skip();
	}
	assert_int_equal(
	    workshop_run(shop,
	        "id=$(readelf -n prog | sed -n 's/.*Build ID: //p') && rm -rf root && "
	        "mkdir -p server/buildid/$id && cp kept/prog.debug server/buildid/$id/debuginfo"),
	    0);
	snprintf(url, sizeof(url), "file://%s/server/", shop->folder);
	setenv("DEBUGINFOD_URLS", url, 1);
	setenv("DEBUGINFOD_CACHE_PATH", workshop_path(shop, "servercache"), 1);
	assert_int_equal(find(shop, "prog", false), -1);
	assert_int_equal(access(workshop_path(shop, "servercache"), F_OK), -1);
	assert_int_equal(find(shop, "prog", true), size_of(shop, "kept/prog.debug"));
	assert_int_equal(find(shop, "other", true), -1);
	unsetenv("DEBUGINFOD_URLS");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(the_build_id_leads_to_it),
	    cmocka_unit_test(what_has_another_build_id_is_refused),
	    cmocka_unit_test(the_link_leads_to_it_in_three_places),
	    cmocka_unit_test(a_wrong_checksum_is_refused),
	    cmocka_unit_test(only_plain_files_are_opened),
	    cmocka_unit_test(a_link_does_not_leave_its_folder),
	    cmocka_unit_test(servers_are_asked_only_on_request),
	};

	return cmocka_run_group_tests(tests, build_twins, workshop_close);
}
