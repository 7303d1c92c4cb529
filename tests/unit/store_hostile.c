/* SPDX-License-Identifier: Apache-2.0 */
/* A store in which others have made links, other files, or nothing at all. */
#include "pprof/store/store.h"
#include "pprof/store/store_folder.h"

#include "pprof/store/store_list.h"
#include "pprof/store/store_plan.h"

#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "tests/unit/store_scene.h"

static void links_are_not_followed(void **state)
{
	char victim[] = "/tmp/heaptap-victim.XXXXXX", path[PATH_MAX], inside[PATH_MAX];
	struct store_list list;
	struct store *store;

	assert_non_null(mkdtemp(victim));
	snprintf(inside, sizeof(inside), "%s/101500.7.heap.pb.gz", victim);
	close(open(inside, O_WRONLY | O_CREAT, 0644));
	put_file("a/2020-01-02/101500.7.heap.pb.gz");
	snprintf(path, sizeof(path), "%s/a/2020-01-01", root);
	assert_int_equal(symlink(victim, path), 0);
	snprintf(path, sizeof(path), "%s/linked", root);
	assert_int_equal(symlink(victim, path), 0);
	snprintf(path, sizeof(path), "%s/a/2020-01-02/101501.7.heap.pb.gz", root);
	assert_int_equal(symlink(inside, path), 0);
	assert_int_equal(store_list_read(&list, root, NULL, false), 0);
	assert_int_equal(list.file_count, 1); /* neither through folders nor of its own */
	store_list_fini(&list);
	store = open_store(1 << 20);
	assert_int_equal(access(inside, F_OK), 0);
	assert_false(is_there("a/2020-01-02/101500.7.heap.pb.gz"));
	assert_true(is_there("a/2020-01-02/101501.7.heap.pb.gz"));
	assert_true(publish_at(store, "linked", "0001", 7, time(NULL), 10, path) < 0);
	assert_true(publish_at(store, "a", "0001", 7, 1577880000, 10, path) < 0);
	store_close(store);
	unlink(inside);
	rmdir(victim);
	clear();
}

static void only_what_it_has_named_is_removed(void **state)
{
	static const char *const others[] = {"notes", "a/notes", "a/2020-01-01/README",
	    "a/2020-01-01/101500.7.heap.pb", "a/2020-01-01/101500.7.heap.jsonl",
	    "a/2020-01-01/timeline.jsonl", ".state/2020-01-01/101500.7.heap.pb.gz",
	    "a b/2020-01-01/101500.7.heap.pb.gz", "a/old/101500.7.heap.pb.gz",
	    "a/2020-01-01/101500.7.heap.pb.gz.symbolized", "push/spool/entry"};
	static const char *const ours[] = {"a/2020-01-01/101500.7.heap.pb.gz",
	    "a/2020-01-01/.heaptap-0123456789abcdef.tmp", "a/2020-01-01/101500.7.timeline.jsonl"};
	char path[PATH_MAX], day[16], young[64];
	const time_t now = time(NULL);
	struct store *store;

	for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++)
		put_file(others[i]);
	for (size_t i = 0; i < sizeof(ours) / sizeof(ours[0]); i++)
		put_file(ours[i]);
	strftime(day, sizeof(day), "%Y-%m-%d", gmtime(&now));
	snprintf(young, sizeof(young), "a/%s/101500.7.timeline.jsonl", day);
	put_file(young);
	store = open_store(1 << 20);
	for (int i = 0; i < 100; i++)
		assert_int_equal(publish_at(store, "b", "0001", 7, time(NULL), 20000, path), 0);
	for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++)
		assert_true(is_there(others[i]));
	for (size_t i = 0; i < sizeof(ours) / sizeof(ours[0]); i++)
		if (is_there(ours[i]))
			fail_msg("%s", ours[i]);
	assert_true(is_there(young)); /* its day has not expired */
	store_close(store);
	clear();
}

static void a_deleted_store_is_made_again(void **state)
{
	struct store *store = open_store(1 << 20);
	struct store_counters counters;
	char path[PATH_MAX];

	for (int i = 0; i < 30; i++)
		assert_int_equal(publish_at(store, "a", "0001", 7, time(NULL), 20000, path), 0);
	clear();
	assert_false(is_there(""));
	assert_int_equal(publish_at(store, "a", "0001", 7, time(NULL), 20000, path), 0);
	assert_true(is_there(path + strlen(root) + 1));
	store_count(store, &counters);
	assert_true(counters.disk_bytes < 100000 && counters.disk_bytes >= disk_use());
	store_close(store);
	clear();
}

static void a_folder_that_cannot_be_made_is_an_error(void **state)
{
	const struct store_settings settings = {
	    .path = "/proc/heaptap/store", .disk_bytes = 1 << 20, .days = 7};
	struct store *store;
	char path[PATH_MAX];

	assert_true(store_open(&store, &settings) < 0);
	assert_non_null(store);
	assert_true(publish_at(store, "a", "0001", 7, time(NULL), 10, path) < 0);
	assert_true(store_thin(store) < 0);
	store_close(store);
}

/* By somebody who never gives it back. */
static void a_lock_is_not_waited_for_without_end(void **state)
{
	struct store_lock theirs, ours;
	bool made;

	(void)state;
	assert_int_equal(store_folder_lock(&theirs, root, 0, (gid_t)-1, &made), 0);
	assert_int_equal(store_folder_lock(&ours, root, 20, (gid_t)-1, &made), -EWOULDBLOCK);
	store_folder_unlock(&theirs);
	assert_int_equal(store_folder_lock(&ours, root, 20, (gid_t)-1, &made), 0);
	store_folder_unlock(&ours);
	clear();
}

/* Who may read the store's folders may lock them as long as he likes. */
static void a_reader_cannot_lock_the_store(void **state)
{
	struct store_lock lock;
	struct stat st;
	bool made;

	(void)state;
	assert_int_equal(store_folder_lock(&lock, root, 0, (gid_t)-1, &made), 0);
	store_folder_unlock(&lock);
	const int reader = open(root, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	assert_int_equal(flock(reader, LOCK_SH), 0);
	assert_int_equal(store_folder_lock(&lock, root, 20, (gid_t)-1, &made), 0);
	assert_int_equal(fstat(lock.fd, &st), 0);
	assert_int_equal(st.st_mode & 07777, 0600);
	store_folder_unlock(&lock);
	close(reader);
	clear();
}

/* Its owner exchanges it for a link to one of ours: nothing is made or removed there. */
static void a_store_in_a_strangers_folder_is_not_led_elsewhere(void **state)
{
	char theirs[96], path[192], victim[96], away[128], made[PATH_MAX];
	struct store_settings settings = {.path = path, .disk_bytes = 1 << 24, .days = 7};
	struct store *store;
	struct stat st;

	(void)state;
	if (geteuid() != 0) {
		print_message("needs root\n");
		skip();
	}
	snprintf(theirs, sizeof(theirs), "%s/theirs", folder);
	snprintf(victim, sizeof(victim), "%s/victim", folder);
	snprintf(path, sizeof(path), "%s/store", theirs);
	snprintf(away, sizeof(away), "%s/away", theirs);
	assert_int_equal(mkdir(theirs, 0755), 0);
	assert_int_equal(mkdir(victim, 0755), 0);
	assert_int_equal(chown(theirs, 4243, 4243), 0);
	assert_int_equal(store_open(&store, &settings), 0);
	assert_int_equal(stat(path, &st), 0);
	assert_int_equal(st.st_mode & 07777, 0750);
	/* he has it away, and puts a link there */
	assert_int_equal(rename(path, away), 0);
	assert_int_equal(symlink(victim, path), 0);
	assert_int_equal(publish_at(store, "app", "exit", 7, time(NULL), 100, made), -ELOOP);
	store_close(store);
	assert_int_equal(store_open(&store, &settings), -ELOOP);
	store_close(store);
	assert_int_equal(rmdir(victim), 0); /* empty */
	unlink(path);
	snprintf(path, sizeof(path), "%s/.lock", away);
	unlink(path);
	rmdir(away);
	rmdir(theirs);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(a_store_in_a_strangers_folder_is_not_led_elsewhere),
	    cmocka_unit_test(links_are_not_followed),
	    cmocka_unit_test(only_what_it_has_named_is_removed),
	    cmocka_unit_test(a_deleted_store_is_made_again),
	    cmocka_unit_test(a_folder_that_cannot_be_made_is_an_error),
	    cmocka_unit_test(a_lock_is_not_waited_for_without_end),
	    cmocka_unit_test(a_reader_cannot_lock_the_store),
	};

	if (!begin())
		return 1;
	return end(cmocka_run_group_tests(tests, NULL, NULL));
}
