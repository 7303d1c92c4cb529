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
#include <sys/wait.h>
#include <unistd.h>

#include "sampler/symbol/perfmap.h"

static struct perfmap *map_of(const char *text)
{
	struct perfmap *map = perfmap_parse(text, strlen(text));

	assert_non_null(map);
	return map;
}

static void expect(const struct perfmap *map, uint64_t addr, const char *name)
{
	const char *found = perfmap_find(map, addr);

	assert_string_equal(found ? found : "(nothing)", name ? name : "(nothing)");
}

static void lines_become_names(void **state)
{
	struct perfmap *map = map_of("7f0010 20 JS:*grow /srv/app.js:12:3\n"
	                             "0x7F0000 0x10 Builtin:Call\r\n"
	                             "ffffffffffffff00 ff last\n");

	expect(map, 0x7effff, NULL);
	expect(map, 0x7f0000, "Builtin:Call");
	expect(map, 0x7f000f, "Builtin:Call");
	expect(map, 0x7f0010, "JS:*grow /srv/app.js:12:3");
	expect(map, 0x7f002f, "JS:*grow /srv/app.js:12:3");
	expect(map, 0x7f0030, NULL);
	expect(map, UINT64_MAX - 1, "last");
	expect(map, UINT64_MAX, NULL);
	perfmap_free(map);
}

static void bad_lines_are_skipped(void **state)
{
	struct perfmap *map = map_of("\n"
	                             "no number\n"
	                             "100 10\n"
	                             "100 10 \n"
	                             "100 0 empty\n"
	                             "-100 10 negative\n"
	                             "10000000000000000 10 too_large\n"
	                             "ffffffffffffffff 10 wraps\n"
	                             "200 10 good\n"
	                             "300 10 being_written");

	assert_int_equal(perfmap_count(map), 1);
	expect(map, 0x208, "good");
	expect(map, 0x308, NULL);
	perfmap_free(map);
}

static void later_lines_win_where_ranges_overlap(void **state)
{
	struct perfmap *map = map_of("100 100 old\n"
	                             "140 20 inner\n"
	                             "180 100 tail\n"
	                             "100 10 head\n"
	                             "500 10 gone\n"
	                             "4f0 40 over\n");

	expect(map, 0x100, "head");
	expect(map, 0x110, "old");
	expect(map, 0x13f, "old");
	expect(map, 0x140, "inner");
	expect(map, 0x15f, "inner");
	expect(map, 0x160, "old");
	expect(map, 0x17f, "old");
	expect(map, 0x180, "tail");
	expect(map, 0x27f, "tail");
	expect(map, 0x280, NULL);
	expect(map, 0x4f0, "over");
	expect(map, 0x508, "over");
	perfmap_free(map);
}

/* Against the definition: the last line that contains the address. */
static void overlaps_agree_with_a_plain_search(void **state)
{
	enum { LINES = 400, SPACE = 2000 };
	static char text[LINES * 40];
	unsigned start[LINES], size[LINES];
	char name[16];
	size_t length = 0;
	struct perfmap *map;

	srand(7);
	for (int i = 0; i < LINES; i++) {
		start[i] = (unsigned)rand() % SPACE;
		size[i] = 1 + (unsigned)rand() % (i % 3 ? 30 : 500);
		length += (size_t)sprintf(text + length, "%x %x n%d\n", start[i], size[i], i);
	}
	map = perfmap_parse(text, length);
	for (unsigned addr = 0; addr < SPACE + 600; addr++) {
		int last = -1;

		for (int i = 0; i < LINES; i++)
			if (addr >= start[i] && addr < start[i] + size[i])
				last = i;
		sprintf(name, "n%d", last);
		expect(map, addr, last < 0 ? NULL : name);
	}
	perfmap_free(map);
}

static void names_are_bounded_and_clean(void **state)
{
	char *text = malloc(100000);
	struct perfmap *map;
	int length = sprintf(text, "100 10 ");

	memset(text + length, 'x', 90000);
	strcpy(text + length + 90000, "\n200 10 a\033[31mb\n");
	map = map_of(text);
	assert_int_equal(strlen(perfmap_find(map, 0x100)), PERFMAP_NAME_MAX);
	expect(map, 0x200, "a?[31mb");
	perfmap_free(map);
	free(text);
}

static int open_map_of(pid_t pid, struct perfmap **map)
{
	struct perf_map_file file;
	int error = perf_map_file_note(&file, pid);

	if (!error)
		error = perfmap_open(&file, map);
	perf_map_file_forget(&file);
	return error;
}

static void a_process_is_asked_for_its_map(void **state)
{
	char path[64];
	struct perfmap *map;
	FILE *file;

	snprintf(path, sizeof(path), "/tmp/perf-%d.map", getpid());
	unlink(path);
	assert_int_equal(open_map_of(getpid(), &map), -ENOENT);
	file = fopen(path, "w");
	assert_non_null(file);
	fputs("1000 20 jitted\n", file);
	fclose(file);
	assert_int_equal(open_map_of(getpid(), &map), 0);
	expect(map, 0x1010, "jitted");
	perfmap_free(map);
	unlink(path);
}

static void strange_files_are_refused(void **state)
{
	char path[64], target[80];
	struct perfmap *map;
	FILE *file;

	snprintf(path, sizeof(path), "/tmp/perf-%d.map", getpid());
	snprintf(target, sizeof(target), "%s.target", path);
	unlink(path);
	assert_int_equal(mkfifo(path, 0600), 0);
	assert_int_equal(open_map_of(getpid(), &map), -EINVAL);
	unlink(path);
	file = fopen(target, "w");
	fputs("1000 20 jitted\n", file);
	fclose(file);
	assert_int_equal(symlink(target, path), 0);
	assert_true(open_map_of(getpid(), &map) < 0);
	unlink(path);
	if (geteuid() == 0) {
		assert_int_equal(rename(target, path), 0);
		assert_int_equal(chown(path, 65534, 65534), 0);
		assert_int_equal(open_map_of(getpid(), &map), -EPERM);
	}
	unlink(path);
	unlink(target);
	assert_true(open_map_of(-1, &map) < 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(lines_become_names),
	    cmocka_unit_test(bad_lines_are_skipped),
	    cmocka_unit_test(later_lines_win_where_ranges_overlap),
	    cmocka_unit_test(overlaps_agree_with_a_plain_search),
	    cmocka_unit_test(names_are_bounded_and_clean),
	    cmocka_unit_test(a_process_is_asked_for_its_map),
	    cmocka_unit_test(strange_files_are_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
