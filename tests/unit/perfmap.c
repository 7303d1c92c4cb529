/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "sampler/symbol/perfmap.h"
#include "tests/unit/stranger.h"

static void expect_of(const char *text, size_t text_bytes, uint64_t addr, const char *name)
{
	struct perfmap *map = perfmap_new(&addr, 1);

	assert_non_null(map);
	assert_int_equal(perfmap_take(map, text, text_bytes), 0);
	const char *found = perfmap_find(map, addr);
	assert_string_equal(found ? found : "(nothing)", name ? name : "(nothing)");
	assert_false(perfmap_cut(map));
	perfmap_free(map);
}

static void expect(const char *text, uint64_t addr, const char *name)
{
	expect_of(text, strlen(text), addr, name);
}

static void lines_become_names(void **state)
{
	static const char map[] = "7f0010 20 JS:*grow /srv/app.js:12:3\n"
	                          "0x7F0000 0x10 Builtin:Call\r\n"
	                          "ffffffffffffff00 ff last\n";

	expect(map, 0x7effff, NULL);
	expect(map, 0x7f0000, "Builtin:Call");
	expect(map, 0x7f000f, "Builtin:Call");
	expect(map, 0x7f0010, "JS:*grow /srv/app.js:12:3");
	expect(map, 0x7f002f, "JS:*grow /srv/app.js:12:3");
	expect(map, 0x7f0030, NULL);
	expect(map, UINT64_MAX - 1, "last");
	expect(map, UINT64_MAX, NULL);
}

static void bad_lines_are_skipped(void **state)
{
	static const char map[] = "\n"
	                          "no number\n"
	                          "100 10\n"
	                          "100 10 \n"
	                          "100 0 empty\n"
	                          "-100 10 negative\n"
	                          "10000000000000000 10 too_large\n"
	                          "ffffffffffffffff 10 wraps\n"
	                          "200 10 good\n"
	                          "300 10 being_written";

	expect(map, 0x108, NULL);
	expect(map, 0x1000000000000000, NULL);
	expect(map, 0x208, "good");
	expect(map, 0x308, NULL);
}

static void later_lines_win_where_ranges_overlap(void **state)
{
	static const char map[] = "100 100 old\n"
	                          "140 20 inner\n"
	                          "180 100 tail\n"
	                          "100 10 head\n"
	                          "500 10 gone\n"
	                          "4f0 40 over\n";

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
}

/* Against the definition: the last line that contains the address. All addresses at once. */
static void overlaps_agree_with_a_plain_search(void **state)
{
	enum { LINES = 400, SPACE = 2000, ADDRS = SPACE + 600 };
	static char text[LINES * 40];
	static uint64_t addrs[ADDRS];
	unsigned start[LINES], size[LINES];
	char name[16];
	size_t length = 0;

	srand(7);
	for (int i = 0; i < LINES; i++) {
		start[i] = (unsigned)rand() % SPACE;
		size[i] = 1 + (unsigned)rand() % (i % 3 ? 30 : 500);
		length += (size_t)sprintf(text + length, "%x %x n%d\n", start[i], size[i], i);
	}
	for (unsigned i = 0; i < ADDRS; i++)
		addrs[i] = (i * 7) % ADDRS;
	struct perfmap *map = perfmap_new(addrs, ADDRS);
	assert_int_equal(perfmap_take(map, text, length), 0);
	for (unsigned addr = 0; addr < ADDRS; addr++) {
		const char *found = perfmap_find(map, addr);
		int last = -1;

		for (int i = 0; i < LINES; i++)
			if (addr >= start[i] && addr < start[i] + size[i])
				last = i;
		sprintf(name, "n%d", last);
		assert_string_equal(found ? found : "(nothing)", last < 0 ? "(nothing)" : name);
	}
	perfmap_free(map);
}

static void names_are_bounded_and_clean(void **state)
{
	char *text = malloc(100000), name[PERFMAP_NAME_MAX + 1] = "";
	int length = sprintf(text, "100 10 ");

	memset(text + length, 'x', 90000);
	memset(name, 'x', PERFMAP_NAME_MAX);
	strcpy(text + length + 90000, "\n200 10 a\033[31mb\n");
	expect(text, 0x100, name);
	expect(text, 0x200, "a?[31mb");
	free(text);
}

static int read_map_of(pid_t pid, struct perfmap *map)
{
	struct perf_map_file file;
	int error = perf_map_file_note(&file, pid);

	if (!error)
		error = perfmap_read(map, &file);
	perf_map_file_forget(&file);
	return error;
}

static int open_map_of(pid_t pid)
{
	const uint64_t addr = 0x1010;
	struct perfmap *map = perfmap_new(&addr, 1);
	int error = read_map_of(pid, map);

	if (!error)
		assert_string_equal(perfmap_find(map, addr), "jitted");
	perfmap_free(map);
	return error;
}

static void a_process_is_asked_for_its_map(void **state)
{
	char path[64];
	FILE *file;

	snprintf(path, sizeof(path), "/tmp/perf-%d.map", getpid());
	unlink(path);
	assert_int_equal(open_map_of(getpid()), -ENOENT);
	file = fopen(path, "w");
	assert_non_null(file);
	fputs("1000 20 jitted\n", file);
	fclose(file);
	assert_int_equal(open_map_of(getpid()), 0);
	unlink(path);
}

/* Read in many pieces, it is what it is in one, but for lines that are longer than a piece. */
static void a_large_file_is_one_text(void **state)
{
	enum { LINES = 200000, LONG = 1500000, EVERY = 70000 };
	uint64_t *addrs = calloc(LINES, sizeof(*addrs));
	char path[64], name[64], *blanks = malloc(LONG + 1);
	struct perfmap *map;
	FILE *file;

	memset(blanks, ' ', LONG);
	blanks[LONG] = '\0';
	snprintf(path, sizeof(path), "/tmp/perf-%d.map", getpid());
	file = fopen(path, "w");
	assert_true(addrs && file);
	for (int i = 0; i < LINES; i++) {
		addrs[i] = 0x1000 + (uint64_t)i * 16;
		fprintf(file, "%lx 10 n%.*s%d\n", (unsigned long)addrs[i], i % 37,
		    "xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx", i);
		if (i % EVERY == 0)
			fprintf(file, "1000 %x long%s\n", LINES * 16, blanks);
	}
	fclose(file);
	map = perfmap_new(addrs, LINES);
	assert_int_equal(read_map_of(getpid(), map), 0);
	unlink(path);
	for (int i = 0; i < LINES; i++) {
		snprintf(name, sizeof(name), "n%.*s%d", i % 37, "xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx", i);
		const char *found = perfmap_find(map, addrs[i]);
		assert_string_equal(found ? found : "(nothing)", name);
	}
	assert_false(perfmap_cut(map));
	perfmap_free(map);
	free(addrs);
	free(blanks);
}

static void write_at(int fd, off_t offset, const char *text)
{
	assert_int_equal(pwrite(fd, text, strlen(text), offset), strlen(text));
}

/* Of a file that is too large, it is the oldest lines that are not read; and it takes no memory of its
 * size. */
static int read_too_large(void)
{
	const uint64_t addrs[] = {0x1010, 0x3010, 0x5010};
	const off_t cut = 1 << 20;
	const struct rlimit memory = {32 << 20, 32 << 20};
	struct perfmap *map = perfmap_new(addrs, 3), *newest = perfmap_new(addrs, 2);
	char path[64];

	snprintf(path, sizeof(path), "/tmp/perf-%d.map", getpid());
	int fd = open(path, O_RDWR | O_CREAT | O_TRUNC, 0600);
	write_at(fd, 0, "1000 20 hours_ago\n5000 20 hours_ago\n");
	write_at(fd, cut, "\n3000 20 within\n");
	write_at(fd, PERFMAP_BYTES_MAX + cut - 100, "\n1000 20 newest\n");
	assert_int_equal(ftruncate(fd, PERFMAP_BYTES_MAX + cut), 0);
	close(fd);
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
	(void)memory; /* its shadow is more */
#else
	setrlimit(RLIMIT_DATA, &memory);
#endif
	int error = read_map_of(getpid(), map), again = read_map_of(getpid(), newest);
	unlink(path);
	return error || again                                      ? 1
	    : strcmp(perfmap_find(map, 0x1010), "newest") != 0     ? 2
	    : strcmp(perfmap_find(map, 0x3010), "within") != 0     ? 3
	    : perfmap_find(map, 0x5010) || !perfmap_cut(map)       ? 4
	    : !perfmap_find(newest, 0x3010) || perfmap_cut(newest) ? 5
	                                                           : 0;
}

static void the_oldest_lines_are_cut(void **state)
{
	int status;
	pid_t pid = fork();

	if (pid == 0)
		_exit(read_too_large());
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
}

static void strange_files_are_refused(void **state)
{
	char path[64], target[80];
	FILE *file;

	snprintf(path, sizeof(path), "/tmp/perf-%d.map", getpid());
	snprintf(target, sizeof(target), "%s.target", path);
	unlink(path);
	assert_int_equal(mkfifo(path, 0600), 0);
	assert_int_equal(open_map_of(getpid()), -EINVAL);
	unlink(path);
	file = fopen(target, "w");
	fputs("1000 20 jitted\n", file);
	fclose(file);
	assert_int_equal(symlink(target, path), 0);
	assert_true(open_map_of(getpid()) < 0);
	unlink(path);
	if (geteuid() == 0) {
		assert_int_equal(rename(target, path), 0);
		assert_int_equal(chown(path, 65534, 65534), 0);
		assert_int_equal(open_map_of(getpid()), -EPERM);
	}
	unlink(path);
	unlink(target);
	assert_true(open_map_of(-1) < 0);
}

/* ---- whose file it is, for a process of another user */

enum { NOBODY = 65534 };

/* Ends by itself with us. `mount_over`: what it mounts over its map, in namespaces of its own. */
static void be_a_user(int fd, void *argument)
{
	const char *mount_over = argument;
	char path[64], map[64],
	    *ids[] = {"setgroups", "deny", "uid_map", "0 65534 1", "gid_map", "0 65534 1"};
	bool good = setresgid(NOBODY, NOBODY, NOBODY) == 0 && setresuid(NOBODY, NOBODY, NOBODY) == 0 &&
	    prctl(PR_SET_DUMPABLE, 1) == 0;

	snprintf(path, sizeof(path), "/tmp/perf-%d.map", (int)getpid());
	if (mount_over)
		good = good && close(open(path, O_WRONLY | O_CREAT | O_EXCL, 0644)) == 0 &&
		    unshare(CLONE_NEWUSER | CLONE_NEWNS) == 0;
	for (int i = 0; mount_over && i < 6; i += 2) {
		snprintf(map, sizeof(map), "/proc/self/%s", ids[i]);
		int map_fd = open(map, O_WRONLY | O_CLOEXEC);
		good = good && map_fd >= 0 && write(map_fd, ids[i + 1], strlen(ids[i + 1])) > 0 &&
		    close(map_fd) == 0;
	}
	char byte = !(good && (!mount_over || mount(mount_over, path, NULL, MS_BIND, NULL) == 0) &&
	    prctl(PR_SET_DUMPABLE, 0) == 0); /* what is in /proc of it is root's then */
	if (write(fd, &byte, 1) == 1)
		(void)!read(fd, &byte, 1);
}

static struct stranger start_user(const char *mount_over)
{
	char byte = 1;

	if (geteuid() != 0) {
		print_message("needs root\n");
		skip();
	}
	struct stranger user = stranger_start(be_a_user, (void *)(uintptr_t)mount_over);
	assert_int_equal(read(user.fd, &byte, 1), 1);
	if (byte == 0)
		return user;
	stranger_end(&user);
	print_message("no namespaces can be made here\n");
	skip();
	return user;
}

static void write_map(const char *path, mode_t mode)
{
	unlink(path);
	int fd = open(path, O_WRONLY | O_CREAT | O_EXCL, mode);
	assert_true(fd >= 0);
	assert_int_equal(write(fd, "1000 20 jitted\n", 15), 15);
	close(fd);
}

/* Written before it had given up root; and what it cannot have written, and may not read. */
static void of_roots_files_those_that_everybody_may_read(void **state)
{
	char path[64];
	struct stranger user = start_user(NULL);

	snprintf(path, sizeof(path), "/tmp/perf-%d.map", (int)user.pid);
	write_map(path, 0644);
	int open_one = open_map_of(user.pid);
	write_map(path, 0600);
	int secret = open_map_of(user.pid);
	unlink(path);
	stranger_end(&user);
	assert_int_equal(open_one, 0);
	assert_int_equal(secret, -EPERM);
}

static void a_file_that_is_mounted_there_is_not_its_map(void **state)
{
	static const char file[] = "/tmp/perfmap-test.root";
	char path[64];

	write_map(file, 0644);
	struct stranger user = start_user(file);
	snprintf(path, sizeof(path), "/tmp/perf-%d.map", (int)user.pid);
	int error = open_map_of(user.pid);
	stranger_end(&user);
	unlink(path);
	unlink(file);
	assert_int_equal(error, -EXDEV);
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
	    cmocka_unit_test(a_large_file_is_one_text),
	    cmocka_unit_test(the_oldest_lines_are_cut),
	    cmocka_unit_test(strange_files_are_refused),
	    cmocka_unit_test(of_roots_files_those_that_everybody_may_read),
	    cmocka_unit_test(a_file_that_is_mounted_there_is_not_its_map),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
