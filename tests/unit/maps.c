/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "sampler/unwind/maps.h"

#include <dlfcn.h>
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

enum { RX = PROT_READ | PROT_EXEC };

static int add(
    struct maps *maps, uint64_t start, uint64_t end, uint64_t pgoff, uint32_t prot, const char *path)
{
	struct map_range range = {
	    .start = start, .len = end - start, .pgoff = pgoff, .prot = prot, .path = path};

	return maps_add(maps, &range);
}

/* "start-end:pgoff ..." in hex. */
static const char *listed(const struct maps *maps)
{
	static char text[4096];
	size_t n = 0;

	text[0] = 0;
	for (size_t i = 0; i < maps_count(maps); i++) {
		const struct map *map = maps_at(maps, i);

		n += (size_t)snprintf(text + n, sizeof(text) - n, "%s%lx-%lx:%lx", i ? " " : "", map->start,
		    map->end, map->pgoff);
	}
	return text;
}

static void later_ranges_replace_what_they_overlap(void **state)
{
	static const struct {
		uint64_t start, end;
		uint32_t prot;
		const char *expected;
	} steps[] = {
	    {0x1000, 0x5000, RX, "1000-5000:0"},
	    {0x8000, 0x9000, RX, "1000-5000:0 8000-9000:0"},
	    {0x2000, 0x3000, RX, "1000-2000:0 2000-3000:0 3000-5000:2000 8000-9000:0"},
	    {0x4000, 0x6000, RX, "1000-2000:0 2000-3000:0 3000-4000:2000 4000-6000:0 8000-9000:0"},
	    {0x0000, 0x1800, RX, "0-1800:0 1800-2000:800 2000-3000:0 3000-4000:2000 4000-6000:0 8000-9000:0"},
	    {0x1000, 0x8800, PROT_READ, "0-1000:0 8800-9000:800"},
	    {0x8800, 0x9000, PROT_READ | PROT_WRITE, "0-1000:0"},
	    {0x0000, 0x1000, RX, "0-1000:0"},
	};
	struct modules *store = modules_new(0);
	struct maps *maps = maps_new(store, 0, false);

	for (size_t i = 0; i < sizeof(steps) / sizeof(steps[0]); i++) {
		assert_int_equal(add(maps, steps[i].start, steps[i].end, 0, steps[i].prot, "//anon"), 0);
		assert_string_equal(listed(maps), steps[i].expected);
	}
	assert_int_equal(add(maps, 0x1000, 0x1000, 0, RX, ""), -EINVAL);
	assert_int_equal(add(maps, UINT64_MAX - 10, 5, 0, RX, ""), -EINVAL);
	assert_int_equal(maps_remove(maps, 0x400, UINT64_MAX), 0);
	assert_string_equal(listed(maps), "0-400:0");
	maps_free(maps);
	modules_free(store);
}

/* Against the simplest thing that can be right: an array with an entry per page. */
static void random_ranges_match_a_page_array(void **state)
{
	enum { PAGES = 64 };
	struct modules *store = modules_new(0);
	struct maps *maps = maps_new(store, 0, false);
	uint64_t page[PAGES] = {0}; /* the page's offset in its range's file, plus one; 0: not mapped */

	srand(1);
	for (int round = 0; round < 20000; round++) {
		unsigned first = (unsigned)rand() % PAGES, n = (unsigned)rand() % (PAGES - first) + 1;
		bool map = rand() % 3;

		if (map)
			add(maps, first, first + n, (uint64_t)round * 100, RX, "");
		else
			maps_remove(maps, first, n);
		for (unsigned i = 0; i < n; i++)
			page[first + i] = map ? (uint64_t)round * 100 + i + 1 : 0;
		for (unsigned i = 0; i < PAGES; i++) {
			const struct map *found = maps_find(maps, i);
			uint64_t offset = found ? found->pgoff + (i - found->start) + 1 : 0;

			if (offset != page[i])
				fail_msg("round %d page %u: %lu, not %lu", round, i, offset, page[i]);
		}
	}
	maps_free(maps);
	modules_free(store);
}

static void lines_of_proc_maps(void **state)
{
	struct map_range range;

	assert_true(maps_parse_line("7f1b2c3d4000-7f1b2c3d6000 r-xp 00002000 fd:01 123456                    "
	                            " /usr/lib/a b.so (deleted)",
	    &range));
	assert_true(range.start == 0x7f1b2c3d4000 && range.len == 0x2000 && range.pgoff == 0x2000);
	assert_int_equal(range.prot, RX);
	assert_true(range.major == 0xfd && range.minor == 1 && range.ino == 123456);
	assert_string_equal(range.path, "/usr/lib/a b.so (deleted)");
	assert_true(maps_parse_line("1000-2000 rwxp 00000000 00:00 0 ", &range));
	assert_string_equal(range.path, "");
	assert_true(maps_parse_line("1000-2000 rwxp 00000000 00:00 0", &range));
	assert_string_equal(range.path, "");
	assert_true(
	    maps_parse_line("ffffffffff600000-ffffffffff601000 --xp 00000000 00:00 0   [vsyscall]", &range));
	assert_string_equal(range.path, "[vsyscall]");
	static const char *const bad[] = {"", "x", "1000-2000", "2000-1000 r-xp 0 0:0 0",
	    "1000-2000 r-xpp 0 0:0 0 /x", "1000-1000 r-xp 0 0:0 0", "1000-2000 r-x 0 0:0 0"};
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		assert_false(maps_parse_line(bad[i], &range));
}

static void kinds_of_ranges(void **state)
{
	static const struct {
		const char *path;
		enum map_kind kind;
	} cases[] = {
	    {"", MAP_KIND_ANON},
	    {"//anon", MAP_KIND_ANON},
	    {"/memfd:jit (deleted)", MAP_KIND_ANON},
	    {"[anon:v8]", MAP_KIND_ANON},
	    {"/dev/zero (deleted)", MAP_KIND_ANON},
	    {"[stack]", MAP_KIND_STACK},
	    {"[heap]", MAP_KIND_HEAP},
	    {"[uprobes]", MAP_KIND_UPROBES},
	    {"[vdso]", MAP_KIND_VDSO},
	    {"[vsyscall]", MAP_KIND_SPECIAL},
	    {"/usr/bin/x", MAP_KIND_FILE},
	    {"anon_inode:[x]", MAP_KIND_ANON},
	};
	struct modules *store = modules_new(0);
	struct maps *maps = maps_new(store, 0, false);

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		add(maps, 0x1000, 0x2000, 0, RX, cases[i].path);
		assert_int_equal(maps_module(maps, 0x1000)->kind, cases[i].kind);
	}
	maps_free(maps);
	modules_free(store);
}

/* A function of ours, of libc and of the vdso: is the address in the file what the file's symbols say? */
static void our_own_maps(void **state)
{
	struct modules *store = modules_new(0);
	struct maps *maps = maps_new(store, getpid(), true);
	Dl_info info;

	assert_int_equal(maps_read_proc(maps), 0);
	assert_true(maps_count(maps) >= 4);
	const struct map *map = maps_find(maps, (uintptr_t)our_own_maps);
	assert_non_null(map);
	assert_true(map->opened && map->has_bias && map->module->readable);
	assert_non_null(strstr(map_path(map), "maps"));
	assert_true(dladdr((void *)our_own_maps, &info));
	/* The test is linked as PIE: its first segment has vaddr 0, so that the bias is where it begins. */
	assert_true(map->bias == (uintptr_t)info.dli_fbase);
	map = maps_find(maps, (uintptr_t)strtoull);
	assert_true(dladdr((void *)strtoull, &info));
	assert_true(map->bias == (uintptr_t)info.dli_fbase);
	for (size_t i = 0; i < maps_count(maps); i++) {
		map = maps_at(maps, i);
		if (map->kind == MAP_KIND_VDSO)
			assert_true(map->has_bias && map->module->vdso && map->bias == map->start);
	}
	assert_null(maps_find(maps, (uintptr_t)&info));
	maps_free(maps);
	modules_free(store);
}

/* What is executable tells: the heap grows all the time. */
static void changes_are_seen_without_reading_again(void **state)
{
	struct modules *store = modules_new(0);
	struct maps *maps = maps_new(store, getpid(), true);

	(void)state;
	assert_false(maps_are_current(maps));
	assert_int_equal(maps_read_proc(maps), 0);
	assert_true(maps_are_current(maps));
	void *data = mmap(NULL, 1 << 20, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	assert_true(data != MAP_FAILED);
	assert_true(maps_are_current(maps));
	void *code = mmap(NULL, 1 << 12, RX, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	assert_true(code != MAP_FAILED);
	assert_false(maps_are_current(maps));
	assert_int_equal(munmap(code, 1 << 12), 0);
	assert_true(maps_are_current(maps));
	assert_int_equal(add(maps, 0x1000, 0x2000, 0, RX, ""), 0);
	assert_false(maps_are_current(maps)); /* they are not what was read any more */
	munmap(data, 1 << 20);
	maps_free(maps);
	modules_free(store);
}

static void a_forked_copy_lives_on_its_own(void **state)
{
	struct modules *store = modules_new(0);
	struct maps *maps = maps_new(store, getpid(), true);

	assert_int_equal(maps_read_proc(maps), 0);
	struct maps *copy = maps_copy(maps, 4711, 0);
	size_t n = maps_count(maps);
	maps_clear(maps);
	assert_int_equal(maps_count(maps), 0);
	maps_free(maps);
	assert_int_equal(maps_count(copy), n);
	const struct map *map = maps_module(copy, (uintptr_t)our_own_maps);
	assert_true(map->module->readable && map->module->references >= 1);
	/* A hole in a file's range leaves two holders of the module. */
	uint32_t references = map->module->references;
	uint64_t start = map->start;
	assert_int_equal(maps_remove(copy, start + 0x1000, 0x10), 0);
	map = maps_find(copy, start);
	assert_int_equal(map->module->references, references + 1);
	maps_free(copy);
	modules_free(store);
}

static void lazily_opened_ranges(void **state)
{
	struct modules *store = modules_new(0);
	struct maps *maps = maps_new(store, getpid(), false);

	assert_int_equal(maps_read_proc(maps), 0);
	assert_int_equal(modules_count(store), 0);
	assert_true(maps_module(maps, (uintptr_t)our_own_maps)->has_bias);
	assert_int_equal(modules_count(store), 1);
	maps_free(maps);
	modules_free(store);
}

/* Waits for a byte, so that all is mapped, and never returns. */
static pid_t fork_with_ranges(size_t ranges)
{
	const size_t page = (size_t)sysconf(_SC_PAGESIZE);
	int ready[2];
	char byte = 0;

	assert_int_equal(pipe(ready), 0);
	pid_t child = fork();
	if (child == 0) {
		/* Every second page: neighbours would be one range. */
		char *at = mmap(NULL, 2 * ranges * page, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

		for (size_t i = 0; i < ranges; i++)
			mprotect(at + 2 * i * page, page, RX);
		(void)!write(ready[1], &byte, 1);
		for (;;)
			pause();
	}
	assert_int_equal(read(ready[0], &byte, 1), 1);
	close(ready[0]);
	close(ready[1]);
	return child;
}

/* The maps of a process that is killed meanwhile: all of them or an error, never the first half. */
static void a_process_that_ends_while_it_is_read(void **state)
{
	enum { RANGES = 2000, ROUNDS = 40 };

	for (int i = 0; i < ROUNDS; i++) {
		struct modules *store = modules_new(0);
		pid_t child = fork_with_ranges(RANGES), killer;
		struct maps *maps = maps_new(store, child, false);

		killer = fork();
		if (killer == 0) {
			usleep((useconds_t)i * 100);
			kill(child, SIGKILL);
			_exit(0);
		}
		int err = maps_read_proc(maps);
		assert_true(err == 0 || err == -ESRCH || err == -ENOENT);
		assert_true(err != 0 || maps_count(maps) >= RANGES);
		assert_int_equal(waitpid(killer, NULL, 0), killer);
		assert_int_equal(waitpid(child, NULL, 0), child);
		maps_free(maps);
		modules_free(store);
	}
}

static void scratch_forgets_when_the_ranges_change(void **state)
{
	struct modules *store = modules_new(0);
	struct maps *maps = maps_new(store, 0, false);
	char *scratch = NULL;

	for (int i = 0; i < 100 && !scratch; i++)
		scratch = maps_scratch(maps, 64);
	assert_non_null(scratch);
	scratch[5] = 1;
	scratch = maps_scratch(maps, 64);
	assert_int_equal(scratch[5], 1);
	add(maps, 0x1000, 0x2000, 0, RX, "");
	scratch = maps_scratch(maps, 64);
	assert_int_equal(scratch[5], 0);
	maps_free(maps);
	modules_free(store);
}

static void too_many_ranges(void **state)
{
	struct modules *store = modules_new(0);
	struct maps *maps = maps_new(store, 0, false);
	int err = 0;

	for (uint64_t i = 0; !err && i <= MAPS_MAX; i++)
		err = add(maps, i * 2, i * 2 + 1, 0, RX, "");
	assert_int_equal(err, -ENOSPC);
	assert_true(maps_count(maps) <= MAPS_MAX);
	maps_free(maps);
	modules_free(store);
}

/* A process that has more of them than are kept: the others are left out, and it is not read again for that.
 */
static void too_many_mappings(void **state)
{
	const size_t page = (size_t)sysconf(_SC_PAGESIZE), pages = 2 * (MAPS_MAX + 10);
	struct modules *store = modules_new(0);
	struct maps *maps = maps_new(store, getpid(), false);
	char *all = mmap(NULL, pages * page, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	assert_true(all != MAP_FAILED);
	for (size_t i = 0; i < pages; i += 2)
		assert_int_equal(mprotect(all + i * page, page, PROT_EXEC), 0);
	assert_int_equal(maps_read_proc(maps), 0);
	assert_in_range(maps_count(maps), MAPS_MAX - 2, MAPS_MAX);
	assert_true(maps_are_current(maps));
	munmap(all, pages * page);
	maps_free(maps);
	modules_free(store);
}

/* What a copy shares is counted in it too, and what is gone makes room. */
static void names_are_bounded(void **state)
{
	struct modules *store = modules_new(0);
	struct maps *maps = maps_new(store, 0, false), *copy;
	char path[4001];
	uint64_t n;

	memset(path, 'x', sizeof(path) - 1);
	path[0] = '/';
	path[sizeof(path) - 1] = '\0';
	for (n = 0; n < 1000 && add(maps, n * 2, n * 2 + 1, 0, RX, path) == 0; n++)
		;
	assert_in_range(n * sizeof(path), MAPS_PATH_BYTES_MAX - 2 * sizeof(path), MAPS_PATH_BYTES_MAX);
	assert_int_equal(add(maps, n * 2, n * 2 + 1, 0, RX, path), -ENOSPC);
	assert_int_equal(add(maps, n * 2, n * 2 + 1, 0, RX, ""), 0);

	copy = maps_copy(maps, 0, 0);
	assert_non_null(copy);
	assert_int_equal(add(copy, n * 4, n * 4 + 1, 0, RX, path), -ENOSPC);
	assert_int_equal(maps_remove(copy, 0, 2), 0);
	assert_int_equal(add(copy, n * 4, n * 4 + 1, 0, RX, path), 0);
	assert_int_equal(add(maps, n * 4, n * 4 + 1, 0, RX, path), -ENOSPC);
	maps_clear(maps);
	assert_int_equal(add(maps, n * 4, n * 4 + 1, 0, RX, path), 0);
	maps_free(copy);
	maps_free(maps);
	modules_free(store);
}

/* The program's own file by a name from here: with its build id it is a file, without it could be anybody's.
 * */
static void relative_names(void **state)
{
	struct modules *store = modules_new(0);
	char full[4096], relative[8192] = ".";
	ssize_t n = readlink("/proc/self/exe", full, sizeof(full) - 1);

	assert_true(n > 0);
	full[n] = 0;
	/* As many folders up as it takes from here. */
	char *here = getcwd(NULL, 0);
	for (char *c = here; *c; c++)
		if (*c == '/')
			strcat(relative, "/..");
	strcat(relative, full);
	free(here);
	struct module *self = module_get(store, &(struct module_request){.path = full});
	assert_true(self->readable && self->file.build_id_len);
	struct map_range range = {.start = 0x1000,
	    .len = 0x1000,
	    .prot = RX,
	    .path = relative,
	    .build_id = self->file.build_id,
	    .build_id_len = self->file.build_id_len,
	    .listed = true};
	struct maps *maps = maps_new(store, 0, true);
	assert_int_equal(maps_add(maps, &range), 0);
	const struct map *map = maps_module(maps, 0x1000);
	assert_int_equal(map->kind, MAP_KIND_FILE);
	assert_ptr_equal(map->module, self);
	assert_string_equal(map_path(map), full);
	uint8_t other[20] = {1};
	range.build_id = other;
	range.build_id_len = sizeof(other);
	assert_int_equal(maps_add(maps, &range), 0);
	assert_false(maps_module(maps, 0x1000)->module->readable);
	range.path = "no/such/file";
	assert_int_equal(maps_add(maps, &range), 0);
	assert_int_equal(maps_module(maps, 0x1000)->kind, MAP_KIND_FILE);
	assert_false(maps_module(maps, 0x1000)->module->readable);
	/* The kernel has such names of what is no file (anon_inode:[...]). */
	range.listed = false;
	assert_int_equal(maps_add(maps, &range), 0);
	assert_int_equal(maps_module(maps, 0x1000)->kind, MAP_KIND_ANON);
	maps_free(maps);
	module_unref(self);
	modules_free(store);
}

static void readings_that_do_not_help_become_rare(void **state)
{
	uint64_t wait_ns = maps_retry_ns(0, false), waited_ns = 0;
	unsigned int readings = 0;

	assert_int_equal(wait_ns, 20 * 1000000);
	for (; waited_ns < UINT64_C(60) * 1000000000; readings++, waited_ns += wait_ns)
		wait_ns = maps_retry_ns(wait_ns, false);
	assert_in_range(readings, 60, 70);
	assert_int_equal(maps_retry_ns(wait_ns, true), 20 * 1000000);
	assert_in_range(maps_retry_ns(UINT64_MAX, false), 1, 1000000000);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(later_ranges_replace_what_they_overlap),
	    cmocka_unit_test(relative_names),
	    cmocka_unit_test(random_ranges_match_a_page_array),
	    cmocka_unit_test(lines_of_proc_maps),
	    cmocka_unit_test(kinds_of_ranges),
	    cmocka_unit_test(our_own_maps),
	    cmocka_unit_test(changes_are_seen_without_reading_again),
	    cmocka_unit_test(a_forked_copy_lives_on_its_own),
	    cmocka_unit_test(lazily_opened_ranges),
	    cmocka_unit_test(a_process_that_ends_while_it_is_read),
	    cmocka_unit_test(scratch_forgets_when_the_ranges_change),
	    cmocka_unit_test(too_many_ranges),
	    cmocka_unit_test(too_many_mappings),
	    cmocka_unit_test(names_are_bounded),
	    cmocka_unit_test(readings_that_do_not_help_become_rare),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
