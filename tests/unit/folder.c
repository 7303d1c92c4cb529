/* SPDX-License-Identifier: Apache-2.0 */
/* Whose folder is it? The rules by which folders are opened: with one of root's, ours, and a stranger's. */
#include "pprof/codec/folder.h"
#include "pprof/codec/file.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

enum { STRANGER = 4243 };

static char place[64];

/* `ours`, `theirs` and `shared` (as /tmp), and in each a folder `real`, a link `link` to it, and a link `out`
 * to `victim`, all by the owner of the folder. */
static int make_place(void **state)
{
	static const char *const names[] = {"ours", "theirs", "shared"};

	(void)state;
	strcpy(place, "/tmp/heaptap-folder.XXXXXX");
	umask(022);
	if (!mkdtemp(place) || chdir(place) || chmod(place, 0755) || mkdir("victim", 0700))
		return -1;
	for (size_t i = 0; i < 3; i++)
		if (mkdir(names[i], 0755) || chdir(names[i]) || mkdir("real", 0755) ||
		    symlink("real", "link") || symlink("../victim", "out") || chdir(".."))
			return -1;
	if (chmod("shared", 01777))
		return -1;
	return geteuid() == 0 ? system("chown -hR 4243:4243 theirs") : 0;
}

static int remove_place(void **state)
{
	char command[PATH_MAX + 16];

	(void)state;
	snprintf(command, sizeof(command), "rm -rf %s", place);
	return chdir("/") || system(command);
}

static int made(const char *path, unsigned int flags)
{
	struct folder folder;
	int err = folder_open(&folder, NULL, path, flags, 0755);

	if (!err)
		folder_close(&folder);
	return err;
}

static int opened(const char *path)
{
	return made(path, 0);
}

static bool exists(const char *path)
{
	return access(path, F_OK) == 0;
}

static void need_root(void)
{
	if (geteuid() == 0)
		return;
	print_message("needs root\n");
	skip();
}

static void assert_same(const char *path, const char *same)
{
	struct folder folder;
	struct stat one, other;

	assert_int_equal(folder_open(&folder, NULL, path, 0, 0), 0);
	assert_int_equal(fstat(folder.fd, &one), 0);
	assert_int_equal(stat(same, &other), 0);
	assert_int_equal(one.st_ino, other.st_ino);
	folder_close(&folder);
}

static void paths_lead_where_the_kernel_says(void **state)
{
	char path[PATH_MAX], deep[PATH_MAX + 10];

	(void)state;
	snprintf(path, sizeof(path), "%s/ours/./link/..//real/", place);
	assert_same(path, "ours/real");
	assert_same("ours/link", "ours/real");
	assert_same("ours/link/../out", "victim");
	assert_same(".", ".");
	assert_same("..", "..");
	assert_same("/", "/");
	snprintf(path, sizeof(path), "%s/ours", place);
	assert_int_equal(symlink(path, "absolute"), 0);
	assert_same("absolute/link", "ours/real");
	assert_same("/proc/self/cwd/ours", "ours");
	assert_same("/proc/self/root/tmp", "/tmp");
	snprintf(path, sizeof(path), "/proc/%d/cwd", (int)getpid());
	assert_same(path, path);
	assert_int_equal(symlink("round", "round"), 0);
	assert_int_equal(symlink("nowhere", "dangling"), 0);
	assert_int_equal(opened("round"), -ELOOP);
	assert_int_equal(opened("dangling"), -ENOENT);
	assert_int_equal(opened("missing"), -ENOENT);
	assert_int_equal(opened(""), -ENOENT);
	assert_int_equal(close(open("file", O_CREAT | O_WRONLY, 0600)), 0);
	assert_int_equal(opened("file"), -ENOTDIR);
	assert_int_equal(opened("file/x"), -ENOTDIR);
	memset(deep, 'x', sizeof(deep));
	deep[300] = '\0';
	assert_int_equal(opened(deep), -ENAMETOOLONG);
	deep[300] = 'x';
	deep[PATH_MAX + 9] = '\0';
	assert_int_equal(opened(deep), -ENAMETOOLONG);
}

static void missing_folders_are_made(void **state)
{
	(void)state;
	assert_int_equal(made("a/b//c/", FOLDER_MAKE), 0);
	assert_true(exists("a/b/c"));
	assert_int_equal(made("d/e", FOLDER_MAKE_LAST), -ENOENT);
	assert_false(exists("d"));
	assert_int_equal(made("d/", FOLDER_MAKE_LAST), 0);
	assert_int_equal(made("ours/link/f", FOLDER_MAKE), 0);
	assert_true(exists("ours/real/f"));
}

static void a_strangers_links_are_not_followed(void **state)
{
	struct folder folder;

	(void)state;
	need_root();
	assert_int_equal(opened("theirs"), 0);
	assert_int_equal(opened("theirs/real"), 0);
	assert_int_equal(opened("theirs/link"), -ELOOP);
	assert_int_equal(opened("theirs/out"), -ELOOP);
	assert_int_equal(made("theirs/out/x/y", FOLDER_MAKE), -ELOOP);
	assert_false(exists("victim/x"));
	/* a folder of ours in it can be exchanged as any other; and `..` leads where he moves it */
	assert_int_equal(made("theirs/made", FOLDER_MAKE), 0);
	assert_int_equal(symlink("/", "theirs/made/root"), 0);
	assert_int_equal(opened("theirs/made/root"), -ELOOP);
	assert_int_equal(opened("theirs/real/../link"), -EPERM);
	/* from a folder that is open already, too */
	assert_int_equal(folder_open(&folder, NULL, "theirs", 0, 0), 0);
	assert_true(folder.foreign);
	struct folder below;
	assert_int_equal(folder_open(&below, &folder, "made/root", 0, 0), -ELOOP);
	assert_int_equal(folder_open(&below, &folder, "..", 0, 0), -EPERM);
	assert_int_equal(folder_open(&below, &folder, "real", 0, 0), 0);
	assert_true(below.foreign);
	folder_close(&below);
	folder_close(&folder);
	/* who stands in it may go up */
	assert_int_equal(chdir("theirs/real"), 0);
	assert_int_equal(opened(".."), 0);
	assert_int_equal(opened("../link"), -ELOOP);
}

static void in_a_shared_folder_links_of_ours_are(void **state)
{
	(void)state;
	assert_int_equal(opened("shared/link"), 0);
	need_root();
	assert_int_equal(lchown("shared/link", STRANGER, STRANGER), 0);
	assert_int_equal(opened("shared/link"), -ELOOP);
	assert_int_equal(chmod("shared", 0775), 0);
	assert_int_equal(opened("shared/link"), -ELOOP);
	/* nobody else has put it there */
	assert_int_equal(chmod("shared", 0755), 0);
	assert_int_equal(opened("shared/link"), 0);
}

/* In a child that is the stranger: what is his is his own, what is root's may be followed. */
static void a_user_follows_links_of_his_own_and_of_root(void **state)
{
	int status;
	pid_t child;

	(void)state;
	need_root();
	child = fork();
	if (child == 0) {
		if (setresgid(STRANGER, STRANGER, STRANGER) || setresuid(STRANGER, STRANGER, STRANGER))
			_exit(9);
		_exit(opened("theirs/link") ? 1 : opened("ours/link") ? 2 : opened("shared/link") ? 3 : 0);
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(status, 0);
}

static void our_own_is_ours_all_the_way(void **state)
{
	(void)state;
	assert_int_equal(made("ours/own", FOLDER_OWN | FOLDER_MAKE), 0);
	assert_int_equal(made("ours/link/own", FOLDER_OWN | FOLDER_MAKE), 0);
	assert_int_equal(chmod("ours/own", 0770), 0);
	assert_int_equal(made("ours/own", FOLDER_OWN), -EPERM);
	assert_int_equal(made("shared", FOLDER_OWN), -EPERM);
	assert_int_equal(made("shared/own", FOLDER_OWN | FOLDER_MAKE), 0);
	need_root();
	assert_int_equal(made("theirs/own", FOLDER_OWN | FOLDER_MAKE), -EPERM);
	assert_int_equal(made("theirs", FOLDER_OWN), -EPERM);
	assert_false(exists("theirs/own"));
	assert_int_equal(mkdir("theirs/roots", 0755), 0);
	assert_int_equal(made("theirs/roots", FOLDER_OWN), -EPERM);
	assert_int_equal(lchown("shared/out", STRANGER, STRANGER), 0);
	assert_int_equal(made("shared/out", FOLDER_OWN), -ELOOP);
}

static const char *of_user(const char *variable, const char *home, const char *fallback)
{
	static char path[PATH_MAX];

	variable ? setenv("HEAPTAP_TEST_FOLDER", variable, 1) : unsetenv("HEAPTAP_TEST_FOLDER");
	home ? setenv("HOME", home, 1) : unsetenv("HOME");
	return folder_of_user("HEAPTAP_TEST_FOLDER", fallback, "/x", path, sizeof(path)) ? NULL : path;
}

static void variables_of_others_are_passed_over(void **state)
{
	char ours[PATH_MAX + 16], theirs[PATH_MAX + 16], missing[PATH_MAX + 16], shared[PATH_MAX + 16];
	char small[4];

	(void)state;
	snprintf(ours, sizeof(ours), "%s/ours", place);
	snprintf(theirs, sizeof(theirs), "%s/theirs", place);
	snprintf(missing, sizeof(missing), "%s/missing/too", place);
	snprintf(shared, sizeof(shared), "%s/shared", place);
	assert_non_null(strstr(of_user(ours, NULL, NULL), "/ours/x"));
	assert_non_null(strstr(of_user(missing, NULL, NULL), "/missing/too/x"));
	assert_non_null(strstr(of_user(shared, NULL, NULL), "/shared/x"));
	assert_non_null(strstr(of_user(NULL, ours, ".f"), "/ours/.f/x"));
	assert_non_null(strstr(of_user("relative", ours, ".f"), "/ours/.f/x"));
	assert_null(of_user(NULL, ours, NULL));
	assert_null(of_user(NULL, NULL, ".f"));
	assert_null(of_user("", "", ".f"));
	setenv("HEAPTAP_TEST_FOLDER", ours, 1);
	assert_int_equal(
	    folder_of_user("HEAPTAP_TEST_FOLDER", NULL, "", small, sizeof(small)), -ENAMETOOLONG);
	need_root();
	assert_null(of_user(theirs, NULL, NULL));
	assert_non_null(strstr(of_user(theirs, ours, ".f"), "/ours/.f/x"));
	assert_null(of_user(theirs, theirs, ".f"));
	strcat(theirs, "/real/missing");
	assert_null(of_user(theirs, NULL, NULL));
}

static int publish(const char *path, unsigned int flags)
{
	return file_publish(path, "text", 4, 0600, flags);
}

static void no_file_is_written_or_read_behind_a_strangers_link(void **state)
{
	uint8_t *bytes;
	size_t length;

	(void)state;
	need_root();
	assert_int_equal(publish("theirs/out/a", 0), -ELOOP);
	assert_int_equal(publish("theirs/out/a/b", FILE_MKDIR), -ELOOP);
	assert_false(exists("victim/a"));
	assert_int_equal(symlink("/dev/full", "theirs/device"), 0);
	assert_int_equal(publish("theirs/device", FILE_FOLLOW), -EINVAL); /* followed it would be -ENOSPC */
	assert_int_equal(symlink("/dev/full", "ours/device"), 0);
	assert_int_equal(publish("ours/device", FILE_FOLLOW), -ENOSPC);
	/* a link to a file is replaced */
	assert_int_equal(publish("victim/secret", 0), 0);
	assert_int_equal(symlink("../victim/secret", "theirs/name"), 0);
	assert_int_equal(symlink("../victim/secret", "ours/name"), 0);
	assert_int_equal(file_read_straight("theirs/name", 10, &bytes, &length), -ELOOP);
	assert_int_equal(file_read_straight("theirs/out/secret", 10, &bytes, &length), -ELOOP);
	assert_int_equal(file_read_straight("ours/name", 10, &bytes, &length), 0);
	free(bytes);
	/* who may exchange it could do so between the look and the opening */
	assert_int_equal(chmod("ours", 0775), 0);
	assert_int_equal(file_read_straight("ours/name", 10, &bytes, &length), -ELOOP);
	assert_int_equal(publish("ours/device", FILE_FOLLOW), -EINVAL);
	assert_int_equal(opened("ours/link"), 0);
	assert_int_equal(chmod("ours", 01777), 0);
	assert_int_equal(file_read_straight("ours/name", 10, &bytes, &length), 0);
	free(bytes);
	assert_int_equal(publish("theirs/name", 0), 0);
	assert_int_equal(file_read_straight("theirs/name", 10, &bytes, &length), 0);
	free(bytes);
}

#define TEST(test) cmocka_unit_test_setup_teardown(test, make_place, remove_place)

int main(void)
{
	const struct CMUnitTest tests[] = {
	    TEST(paths_lead_where_the_kernel_says),
	    TEST(missing_folders_are_made),
	    TEST(a_strangers_links_are_not_followed),
	    TEST(in_a_shared_folder_links_of_ours_are),
	    TEST(a_user_follows_links_of_his_own_and_of_root),
	    TEST(our_own_is_ours_all_the_way),
	    TEST(variables_of_others_are_passed_over),
	    TEST(no_file_is_written_or_read_behind_a_strangers_link),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
