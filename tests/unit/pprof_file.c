/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "pprof/codec/file.h"

/* Every test in an empty folder of its own, as the working directory. */
static int enter_folder(void **state)
{
	char path[] = "/tmp/heaptap-file.XXXXXX";

	if (!mkdtemp(path) || chdir(path))
		return -1;
	*state = strdup(path);
	return *state ? 0 : -1;
}

static int leave_folder(void **state)
{
	char command[64];

	snprintf(command, sizeof(command), "rm -rf %s", (char *)*state);
	free(*state);
	return chdir("/") || system(command);
}

static size_t count_entries(const char *folder)
{
	DIR *dir = opendir(folder);
	struct dirent *entry;
	size_t count = 0;

	assert_non_null(dir);
	while ((entry = readdir(dir)))
		if (strcmp(entry->d_name, ".") && strcmp(entry->d_name, ".."))
			count++;
	closedir(dir);
	return count;
}

static void assert_content(const char *path, const char *text)
{
	uint8_t *data;
	size_t len;

	assert_int_equal(file_read(path, 1 << 20, &data, &len), 0);
	assert_int_equal(len, strlen(text));
	assert_memory_equal(data, text, len);
	free(data);
}

static int publish(const char *path, const char *text, unsigned int flags)
{
	return file_publish(path, text, strlen(text), 0600, flags);
}

static void a_file_appears_whole_with_its_mode(void **state)
{
	struct stat st;
	mode_t mask = umask(022);

	assert_int_equal(publish("a", "text", 0), 0);
	assert_content("a", "text");
	assert_int_equal(stat("a", &st), 0);
	assert_int_equal(st.st_mode & 07777, 0600);
	assert_int_equal(file_publish("b", "", 0, 0666, FILE_FSYNC), 0);
	assert_content("b", "");
	assert_int_equal(stat("b", &st), 0);
	assert_int_equal(st.st_mode & 07777, 0644);
	assert_int_equal(count_entries("."), 2);
	umask(mask);
}

static void an_older_file_is_replaced_unless_told_otherwise(void **state)
{
	assert_int_equal(publish("a", "one", 0), 0);
	assert_int_equal(publish("a", "two", 0), 0);
	assert_content("a", "two");
	assert_int_equal(publish("a", "three", FILE_NO_REPLACE), -EEXIST);
	assert_content("a", "two");
	assert_int_equal(publish("b", "four", FILE_NO_REPLACE), 0);
	assert_content("b", "four");
	assert_int_equal(symlink("nowhere", "dangling"), 0);
	assert_int_equal(publish("dangling", "five", FILE_NO_REPLACE), -EEXIST);
	assert_int_equal(count_entries("."), 3);
}

static void missing_folders_are_made_when_asked(void **state)
{
	assert_int_equal(publish("x/y//z/a", "text", 0), -ENOENT);
	assert_int_equal(count_entries("."), 0);
	assert_int_equal(publish("x/y//z/a", "text", FILE_MKDIR | FILE_FSYNC), 0);
	assert_content("x/y/z/a", "text");
	assert_int_equal(publish("x/y/b", "text", FILE_MKDIR), 0);
	assert_int_equal(publish("x/y/b/c", "text", FILE_MKDIR), -ENOTDIR);
	assert_int_equal(count_entries("x/y"), 2);
}

static void a_symbolic_link_is_replaced(void **state)
{
	struct stat st;

	assert_int_equal(publish("real", "real", 0), 0);
	assert_int_equal(symlink("real", "link"), 0);
	assert_int_equal(publish("link", "new", 0), 0);
	assert_int_equal(lstat("link", &st), 0);
	assert_true(S_ISREG(st.st_mode));
	assert_content("real", "real");
}

/* As /dev/stdout is a link to /proc/self/fd/1: nothing takes its place, and the data goes where it leads. */
static void a_link_to_a_descriptor_stays(void **state)
{
	char path[64];
	struct stat st;
	int fd = open("file", O_RDWR | O_CREAT, 0600), ends[2];

	assert_true(fd >= 0);
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	assert_int_equal(symlink(path, "out"), 0);
	assert_int_equal(publish("out", "new", 0), -EINVAL);
	assert_int_equal(publish("out", "new", FILE_FOLLOW), -EINVAL);
	assert_int_equal(lstat("out", &st), 0);
	assert_true(S_ISLNK(st.st_mode));
	assert_content("file", "");
	assert_int_equal(publish(path, "one", FILE_FOLLOW), 0);
	snprintf(path, sizeof(path), "/dev/fd/%d", fd);
	assert_int_equal(publish(path, "two", FILE_FOLLOW), 0);
	assert_content("file", "onetwo");
	close(fd);
	assert_int_equal(publish(path, "three", FILE_FOLLOW), -EBADF);
	assert_int_equal(pipe(ends), 0);
	snprintf(path, sizeof(path), "/proc/self/fd/%d", ends[1]);
	assert_int_equal(publish(path, "text", FILE_FOLLOW), 0);
	close(ends[1]);
	assert_int_equal(read(ends[0], path, sizeof(path)), 4);
	close(ends[0]);
}

/* The folder's owner: "name" is a link to a device and to a file of ours in turn, until killed. */
static void swap_forever(void)
{
	for (unsigned int turn = 0;; turn++) {
		unlink("next");
		if (symlink(turn % 2 ? "victim" : "/dev/null", "next") || rename("next", "name"))
			_exit(1);
	}
}

static void a_link_swapped_at_any_moment_leads_nowhere(void **state)
{
	int status;
	pid_t swapper;

	assert_int_equal(publish("victim", "precious", 0), 0);
	assert_int_equal(symlink("/dev/null", "name"), 0);
	swapper = fork();
	if (swapper == 0)
		swap_forever();
	for (int i = 0; i < 20000; i++)
		publish("name", "overwritten", i % 2 ? FILE_FOLLOW : 0);
	assert_int_equal(waitpid(swapper, &status, WNOHANG), 0);
	kill(swapper, SIGKILL);
	assert_int_equal(waitpid(swapper, &status, 0), swapper);
	assert_content("victim", "precious");
	assert_int_equal(access("name", F_OK), 0);
}

static void what_is_no_file_stays(void **state)
{
	struct stat st;

	assert_int_equal(mkdir("folder", 0777), 0);
	assert_int_equal(mkfifo("fifo", 0666), 0);
	assert_int_equal(symlink("/dev/null", "null"), 0);
	assert_int_equal(publish("folder", "x", 0), -EISDIR);
	assert_int_equal(publish("folder/", "x", 0), -EISDIR);
	assert_int_equal(publish("missing/", "x", FILE_MKDIR), -EISDIR);
	assert_int_equal(publish(".", "x", 0), -EISDIR);
	assert_int_equal(publish("", "x", 0), -ENOENT);
	assert_int_equal(publish("fifo", "x", 0), -EINVAL);
	assert_int_equal(publish("null", "x", 0), -EINVAL);
	assert_int_equal(publish("null", "x", FILE_FOLLOW), 0);
	assert_int_equal(lstat("null", &st), 0);
	assert_true(S_ISLNK(st.st_mode));
	assert_int_equal(publish("/dev/null", "x", FILE_NO_REPLACE), 0);
	assert_int_equal(stat("/dev/null", &st), 0);
	assert_true(S_ISCHR(st.st_mode));
	assert_int_equal(publish("/dev/full", "x", 0), -ENOSPC);
	assert_int_equal(count_entries("."), 3);
}

static void names_may_have_all_the_length_there_is(void **state)
{
	char name[258];

	memset(name, 'n', sizeof(name));
	name[255] = '\0';
	assert_int_equal(publish(name, "text", 0), 0);
	assert_content(name, "text");
	name[255] = 'n';
	name[256] = '\0';
	assert_int_equal(publish(name, "text", 0), -ENAMETOOLONG);
	assert_int_equal(count_entries("."), 1);
}

/* Runs part in a child of its own; true if it returned 0. */
static bool in_child(int (*part)(void))
{
	int status;
	pid_t pid = fork();

	assert_true(pid >= 0);
	if (!pid)
		_exit(part());
	assert_int_equal(waitpid(pid, &status, 0), pid);
	return WIFEXITED(status) && !WEXITSTATUS(status);
}

static int publish_too_much(void)
{
	static char data[100000];
	struct rlimit limit = {50000, 50000};

	if (setrlimit(RLIMIT_FSIZE, &limit))
		return 1;
	return file_publish("a", data, sizeof(data), 0600, 0) != -EFBIG;
}

static void a_file_cut_short_never_appears(void **state)
{
	assert_int_equal(publish("a", "old", 0), 0);
	assert_true(in_child(publish_too_much));
	assert_content("a", "old");
	assert_int_equal(count_entries("."), 1);
}

enum { CHILD_SKIPPED = 77 };

static int publish_to_a_full_disk(void)
{
	static char data[100000];
	DIR *dir;
	int entries = 0;

	if (mkdir("disk", 0777) || unshare(CLONE_NEWNS) ||
	    mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) ||
	    mount("tmpfs", "disk", "tmpfs", 0, "size=64k"))
		return CHILD_SKIPPED;
	if (publish("disk/a", "old", 0))
		return 1;
	if (file_publish("disk/a", data, sizeof(data), 0600, FILE_FSYNC) != -ENOSPC)
		return 2;
	dir = opendir("disk");
	while (dir && readdir(dir))
		entries++;
	return entries == 3 ? 0 : 3; /* . .. a */
}

static void a_full_disk_leaves_the_old_file(void **state)
{
	int status;
	pid_t pid = fork();

	assert_true(pid >= 0);
	if (!pid)
		_exit(publish_to_a_full_disk());
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFEXITED(status));
	if (WEXITSTATUS(status) == CHILD_SKIPPED) {
		print_message("no right to mount a tmpfs\n");
		skip();
	}
	assert_int_equal(WEXITSTATUS(status), 0);
}

static int publish_without_the_right(void)
{
	if (!geteuid() && (setresgid(65534, 65534, 65534) || setresuid(65534, 65534, 65534)))
		return 1;
	return publish("locked/a", "text", 0) != -EACCES ||
	    publish("locked/b/c", "text", FILE_MKDIR) != -EACCES;
}

static void a_locked_folder_is_refused(void **state)
{
	assert_int_equal(chmod(".", 0755), 0);
	assert_int_equal(mkdir("locked", 0555), 0);
	assert_true(in_child(publish_without_the_right));
	assert_int_equal(count_entries("locked"), 0);
}

/* A reader that looks all the time sees one whole file or another. */
static void nobody_sees_half_a_file(void **state)
{
	enum { LEN = 300000, ROUNDS = 200 };
	static char data[LEN];
	int status, round;
	pid_t writer;

	memset(data, 'a', LEN);
	assert_int_equal(file_publish("f", data, LEN, 0600, 0), 0);
	writer = fork();
	assert_true(writer >= 0);
	for (round = 0; !writer && round < ROUNDS; round++) {
		memset(data, 'a' + round % 26, LEN);
		if (file_publish("f", data, LEN, 0600, 0))
			_exit(1);
	}
	if (!writer)
		_exit(0);
	while (!waitpid(writer, &status, WNOHANG)) {
		uint8_t *seen;
		size_t len;

		assert_int_equal(file_read("f", LEN, &seen, &len), 0);
		assert_int_equal(len, LEN);
		assert_memory_equal(seen, seen + 1, LEN - 1); /* all bytes equal */
		free(seen);
	}
	assert_int_equal(status, 0);
	assert_int_equal(count_entries("."), 1);
}

static void reading_keeps_to_its_limit(void **state)
{
	uint8_t *data;
	size_t len;

	assert_int_equal(publish("a", "12345", 0), 0);
	assert_int_equal(file_read("a", 5, &data, &len), 0);
	free(data);
	assert_int_equal(file_read("a", 4, &data, &len), -EFBIG);
	assert_int_equal(file_read("/dev/zero", 1 << 20, &data, &len), -EFBIG);
	assert_int_equal(file_read("missing", 5, &data, &len), -ENOENT);
	assert_int_equal(file_read(".", 5, &data, &len), -EISDIR);
}

/* Nothing that waits for somebody to write: but what is open already is read to its end, whoever opened it
 * and how. */
static void reading_waits_for_nobody(void **state)
{
	char path[32];
	int ends[2];
	uint8_t *data;
	size_t len;

	assert_int_equal(mkfifo("fifo", 0600), 0);
	assert_int_equal(file_read("fifo", 5, &data, &len), -ESPIPE);
	assert_non_null(strstr(file_read_error(-ESPIPE), "FIFO"));
	ends[0] = posix_openpt(O_RDWR | O_NOCTTY);
	assert_true(ends[0] >= 0);
	snprintf(path, sizeof(path), "/dev/fd/%d", ends[0]);
	assert_int_equal(file_read(path, 5, &data, &len), -ENOTTY);
	close(ends[0]);
	for (int socket = 0; socket < 2; socket++) {
		pid_t writer;

		assert_int_equal(socket ? socketpair(AF_UNIX, SOCK_STREAM, 0, ends) : pipe(ends), 0);
		assert_int_equal(fcntl(ends[0], F_SETFL, O_NONBLOCK), 0);
		snprintf(path, sizeof(path), "%s%d", socket ? "/proc/self/fd/" : "/dev/fd/", ends[0]);
		writer = fork();
		if (!writer)
			_exit(write(ends[1], "123", 3) != 3 || write(ends[1], "45", 2) != 2);
		close(ends[1]);
		assert_int_equal(file_read(path, 5, &data, &len), 0);
		assert_int_equal(len, 5);
		assert_memory_equal(data, "12345", 5);
		free(data);
		assert_int_equal(waitpid(writer, NULL, 0), writer);
		close(ends[0]);
	}
	assert_int_equal(file_read("/dev/fd/1000", 5, &data, &len), -EBADF);
}

int main(void)
{
#define FILE_TEST(test) cmocka_unit_test_setup_teardown(test, enter_folder, leave_folder)
	const struct CMUnitTest tests[] = {
	    FILE_TEST(a_file_appears_whole_with_its_mode),
	    FILE_TEST(an_older_file_is_replaced_unless_told_otherwise),
	    FILE_TEST(missing_folders_are_made_when_asked),
	    FILE_TEST(a_symbolic_link_is_replaced),
	    FILE_TEST(a_link_to_a_descriptor_stays),
	    FILE_TEST(what_is_no_file_stays),
	    FILE_TEST(a_link_swapped_at_any_moment_leads_nowhere),
	    FILE_TEST(names_may_have_all_the_length_there_is),
	    FILE_TEST(a_file_cut_short_never_appears),
	    FILE_TEST(a_full_disk_leaves_the_old_file),
	    FILE_TEST(a_locked_folder_is_refused),
	    FILE_TEST(nobody_sees_half_a_file),
	    FILE_TEST(reading_keeps_to_its_limit),
	    FILE_TEST(reading_waits_for_nobody),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
