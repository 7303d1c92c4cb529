/* SPDX-License-Identifier: Apache-2.0 */
/* Names and lines from jitdump files, good, broken and hostile; and which files are opened. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "sampler/linux/jit_files.h"
#include "sampler/symbol/jitdump.h"

enum { FILE_BYTES = 1 << 20, CODE = 0x10000 };

/* A file that is being written. */
struct file {
	unsigned char bytes[FILE_BYTES];
	size_t length;
	int error; /* of every read */
};

static struct file *file;

static void put(const void *bytes, size_t count)
{
	memcpy(file->bytes + file->length, bytes, count);
	file->length += count;
}

static void put_u32(uint32_t word)
{
	put(&word, sizeof(word));
}

static void put_u64(uint64_t word)
{
	put(&word, sizeof(word));
}

static void put_header(uint32_t padding)
{
	put_u32(0x4a695444);
	put_u32(1);
	put_u32(40);
	put_u32(62);
	put_u32(padding);
	put_u32(1234);
	put_u64(0);
	put_u64(0);
}

static void put_load(uint64_t start, uint64_t bytes, uint64_t index, const char *name)
{
	put_u32(0);
	put_u32((uint32_t)(56 + strlen(name) + 1 + 8));
	put_u64(0);
	put_u32(1);
	put_u32(1);
	put_u64(start);
	put_u64(start);
	put_u64(bytes);
	put_u64(index);
	put(name, strlen(name) + 1);
	put_u64(0); /* code */
}

static void put_move(uint64_t from, uint64_t to, uint64_t bytes, uint64_t index)
{
	put_u32(1);
	put_u32(64);
	put_u64(0);
	put_u32(1);
	put_u32(1);
	put_u64(to);
	put_u64(from);
	put_u64(to);
	put_u64(bytes);
	put_u64(index);
}

struct line {
	uint64_t start;
	uint32_t line;
	const char *file;
};

static void put_lines(uint64_t start, const struct line *lines, size_t count)
{
	size_t bytes = 32;

	for (size_t i = 0; i < count; i++)
		bytes += 16 + strlen(lines[i].file) + 1;
	put_u32(2);
	put_u32((uint32_t)bytes);
	put_u64(0);
	put_u64(start);
	put_u64(count);
	for (size_t i = 0; i < count; i++) {
		put_u64(lines[i].start);
		put_u32(lines[i].line);
		put_u32(0);
		put(lines[i].file, strlen(lines[i].file) + 1);
	}
}

static int read_bytes(void *context, void *to, size_t bytes, uint64_t offset)
{
	const struct file *f = context;

	if (f->error)
		return f->error;
	assert_true(offset <= f->length && bytes <= f->length - offset);
	memcpy(to, f->bytes + offset, bytes);
	return 0;
}

static int taken;

/* The file as it is by now, for one address: "name" or "name file:line". */
static const char *spelled(uint64_t addr)
{
	static char text[4096];
	struct jitdump *jd = jitdump_new(&addr, 1);
	const struct jitdump_source source = {read_bytes, file, file->length};

	assert_non_null(jd);
	taken = jitdump_take(jd, &source);
	const struct jitdump_name *name = jitdump_find(jd, addr);
	assert_null(jitdump_find(jd, addr + 1));
	snprintf(text, sizeof(text), "%s", name ? name->function : "-");
	if (name && name->file)
		snprintf(text + strlen(text), sizeof(text) - strlen(text), " %s:%u", name->file, name->line);
	jitdump_free(jd);
	return text;
}

static int begin(void **unused)
{
	file = calloc(1, sizeof(*file));
	if (file)
		put_header(0);
	return file ? 0 : -1;
}

static int end(void **unused)
{
	free(file);
	return 0;
}

static void records_become_names(void **unused)
{
	put_load(CODE, 0x20, 1, "py::load:/srv/app.py");
	put_u32(4); /* unwind information, and what is not known yet */
	put_u32(24);
	put_u64(0);
	put_u64(0);
	put_u32(77);
	put_u32(16);
	put_u64(0);
	put_load(CODE + 0x20, 0x10, 2, "handle");
	assert_string_equal(spelled(CODE), "py::load:/srv/app.py");
	assert_int_equal(taken, 0);
	assert_string_equal(spelled(CODE + 0x1f), "py::load:/srv/app.py");
	assert_string_equal(spelled(CODE + 0x20), "handle");
	assert_string_equal(spelled(CODE + 0x2f), "handle");
	assert_string_equal(spelled(CODE + 0x30), "-");
	assert_string_equal(spelled(CODE - 1), "-");
	/* The address is used again; the later record is valid, also where it has no name. */
	put_load(CODE + 8, 8, 3, "later");
	assert_string_equal(spelled(CODE + 7), "py::load:/srv/app.py");
	assert_string_equal(spelled(CODE + 8), "later");
	assert_string_equal(spelled(CODE + 16), "py::load:/srv/app.py");
	put_load(CODE + 8, 8, 4, "");
	assert_string_equal(spelled(CODE + 8), "[jit]");
}

static void moved_code_keeps_its_name(void **unused)
{
	const struct line lines[] = {{CODE, 3, "a.c"}, {CODE + 8, 4, "\xff"}};

	put_lines(CODE, lines, 2);
	put_load(CODE, 0x20, 1, "moved");
	put_load(0x30000, 0x20, 2, "stays");
	put_move(CODE, 0x20000, 0x20, 1);
	assert_string_equal(spelled(0x20004), "moved a.c:3");
	assert_string_equal(spelled(0x20008), "moved a.c:4");
	put_move(0x20000, 0x30000, 0x20, 1);
	assert_string_equal(spelled(0x30008), "moved a.c:4");
	/* What was never made, or is made later, has no name. */
	put_move(1, 0x40000, 0x20, 99);
	put_load(0x50000, 0x20, 99, "too late");
	assert_string_equal(spelled(0x40000), "[jit]");
}

static void lines_are_those_of_the_code(void **unused)
{
	const struct line lines[] = {{CODE + 8, 12, "/srv/b.c"}, {CODE, 10, "/srv/a.c"},
	    {CODE + 16, 7, "\xff"}, {CODE + 0x20, 99, "/srv/outside.c"}, {CODE - 8, 98, "/srv/outside.c"}};

	put_lines(CODE, lines, 5);
	put_load(CODE, 0x20, 1, "f");
	put_load(CODE + 0x100, 0x20, 2, "g");
	assert_string_equal(spelled(CODE), "f /srv/a.c:10");
	assert_string_equal(spelled(CODE + 9), "f /srv/b.c:12");
	assert_string_equal(spelled(CODE + 0x1f), "f /srv/a.c:7");
	assert_string_equal(spelled(CODE + 0x100), "g");
	/* Of other code, or of the code before. */
	put_lines(CODE + 0x400, lines, 1);
	put_load(CODE, 0x20, 3, "h");
	assert_string_equal(spelled(CODE + 9), "h");
	put_lines(CODE, lines, 1);
	put_load(CODE, 0x20, 4, "i");
	put_load(CODE, 0x20, 5, "j");
	assert_string_equal(spelled(CODE + 9), "j");
}

/* node 20 writes lines of other functions, and garbage. */
static void lines_of_v8_are_not_believed(void **unused)
{
	const struct line lines[] = {{CODE, 10, "/srv/a.js"}};

	file->length = 0;
	put_header(0xdeadbeef);
	put_lines(CODE, lines, 1);
	put_load(CODE, 0x20, 1, "JS:*f /srv/a.js:9:1");
	assert_string_equal(spelled(CODE), "JS:*f /srv/a.js:9:1");
}

/* At each byte where it may end, and with each byte changed: no read beyond the end, and no hang. */
static void broken_files(void **unused)
{
	const struct line lines[] = {{CODE, 3, "a.c"}, {CODE + 8, 4, "b.c"}};

	put_lines(CODE, lines, 2);
	put_load(CODE, 0x20, 1, "first");
	put_load(CODE, 0x20, 2, "second");
	put_move(CODE, CODE + 0x100, 0x20, 1);
	const size_t whole = file->length;
	for (file->length = 0; file->length < whole; file->length++)
		(void)spelled(CODE);
	for (size_t i = 0; i < whole; i++)
		for (unsigned bit = 0; bit < 8; bit++) {
			file->bytes[i] ^= (unsigned char)(1 << bit);
			(void)spelled(CODE + 0x100);
			file->bytes[i] ^= (unsigned char)(1 << bit);
		}
	assert_string_equal(spelled(CODE), "second");
	/* A last record that is not whole, and a name without an end. */
	file->length = whole - 1;
	assert_string_equal(spelled(CODE + 0x100), "-");
	file->length = whole;
	file->bytes[0]++;
	assert_string_equal(spelled(CODE), "-");
	assert_int_equal(taken, -ENOEXEC);
	file->bytes[0]--;
	file->error = -EIO;
	assert_string_equal(spelled(CODE), "-");
	assert_int_equal(taken, -EIO);
}

/* Of several addresses, each has the last record's name. */
static void each_address_has_its_own(void **unused)
{
	const uint64_t addrs[] = {CODE + 12, CODE + 4, CODE + 8, CODE + 4};
	static const char *const names[] = {"old", "new", "newest", "new"};
	struct jitdump *jd = jitdump_new(addrs, 4);

	put_load(CODE, 16, 1, "old");
	put_load(CODE, 12, 2, "new");
	put_load(CODE + 8, 4, 3, "newest");
	const struct jitdump_source source = {read_bytes, file, file->length};
	assert_int_equal(jitdump_take(jd, &source), 0);
	for (size_t i = 0; i < 4; i++)
		assert_string_equal(jitdump_find(jd, addrs[i])->function, names[i]);
	jitdump_free(jd);
}

/* Many records about all addresses do not take the product of both. */
static void many_records_about_many_addresses(void **unused)
{
	enum { ADDRS = 20000 };
	uint64_t *addrs = calloc(ADDRS, sizeof(*addrs));

	for (size_t i = 0; i < ADDRS; i++)
		addrs[i] = CODE + i;
	while (file->length + 128 < FILE_BYTES)
		put_load(CODE, 1 << 20, 1, "all");
	struct jitdump *jd = jitdump_new(addrs, ADDRS);
	const struct jitdump_source source = {read_bytes, file, file->length};
	assert_int_equal(jitdump_take(jd, &source), 0);
	for (size_t i = 0; i < ADDRS; i++)
		assert_string_equal(jitdump_find(jd, CODE + i)->function, "all");
	assert_false(jitdump_cut(jd));
	jitdump_free(jd);
	free(addrs);
}

/* ---- which file */

static void names_of_files(void **unused)
{
	static const char *const good[] = {
	    "/tmp/jit-1.dump", "/home/u/.debug/jit/java-jit-x/jit-123456.dump"};
	static const char *const bad[] = {"jit-1.dump", "/tmp/jit-.dump", "/tmp/jit-1.dumpx",
	    "/tmp/jit-1x.dump", "/tmp/xjit-1.dump", "/tmp/jit-1.dump (deleted)", "/tmp/jit-1.dump/x", ""};

	for (size_t i = 0; i < sizeof(good) / sizeof(*good); i++)
		assert_true(jitdump_file_is_name(good[i]));
	for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++)
		assert_false(jitdump_file_is_name(bad[i]));
}

static void files_that_are_opened(void **unused)
{
	char folder[] = "/tmp/heaptap-jitdump.XXXXXX", path[64], other[64];
	struct jitdump_file noted = JITDUMP_FILE_NONE;
	struct stat status;

	assert_non_null(mkdtemp(folder));
	snprintf(path, sizeof(path), "%s/jit-1.dump", folder);
	snprintf(other, sizeof(other), "%s/jit-2.dump", folder);
	int fd = open(path, O_CREAT | O_WRONLY, 0600);
	assert_true(fd >= 0 && write(fd, file->bytes, file->length) == (ssize_t)file->length);
	assert_int_equal(fstat(fd, &status), 0);
	assert_int_equal(jitdump_file_note(&noted, getpid(), path, status.st_ino), 0);
	assert_true(noted.fd >= 0 && noted.ino == status.st_ino);
	/* Another file has its name by now; it is no file; it is gone; the process is. */
	assert_int_equal(jitdump_file_note(&noted, getpid(), path, status.st_ino + 1), -ESTALE);
	assert_int_equal(mkfifo(other, 0600), 0);
	assert_int_equal(stat(other, &status), 0);
	assert_int_equal(jitdump_file_note(&noted, getpid(), other, status.st_ino), -EINVAL);
	assert_int_equal(unlink(other), 0);
	assert_int_equal(jitdump_file_note(&noted, getpid(), other, status.st_ino), -ENOENT);
	assert_true(jitdump_file_note(&noted, 0x7ffffff0, path, status.st_ino) < 0);
	/* What was noted stays. */
	assert_true(noted.fd >= 0);
	if (geteuid() == 0) {
		/* Of another user. */
		assert_int_equal(fchown(fd, 12345, 12345), 0);
		assert_int_equal(fstat(fd, &status), 0);
		assert_int_equal(jitdump_file_note(&noted, getpid(), path, status.st_ino), -EPERM);
	}
	jitdump_file_forget(&noted);
	assert_int_equal(noted.fd, -1);
	close(fd);
	unlink(path);
	rmdir(folder);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test_setup_teardown(records_become_names, begin, end),
	    cmocka_unit_test_setup_teardown(moved_code_keeps_its_name, begin, end),
	    cmocka_unit_test_setup_teardown(lines_are_those_of_the_code, begin, end),
	    cmocka_unit_test_setup_teardown(lines_of_v8_are_not_believed, begin, end),
	    cmocka_unit_test_setup_teardown(broken_files, begin, end),
	    cmocka_unit_test_setup_teardown(each_address_has_its_own, begin, end),
	    cmocka_unit_test_setup_teardown(many_records_about_many_addresses, begin, end),
	    cmocka_unit_test(names_of_files),
	    cmocka_unit_test_setup_teardown(files_that_are_opened, begin, end),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
