/* SPDX-License-Identifier: Apache-2.0 */
/* A real store in a folder of its own. */
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

/* ---- writing */

static void files_have_names_and_modes(void **state)
{
	struct store *store = open_store(1 << 20);
	struct store_counters counters;
	struct stat st;
	char path[PATH_MAX], wanted[PATH_MAX];
	mode_t before = umask(077);

	assert_int_equal(publish_at(store, "shop/web", "0001", 4711, 1795342500, 5000, path), 0);
	umask(before);
	snprintf(wanted, sizeof(wanted), "%s/shop_web/2026-11-22/101500.4711.heap.pb.gz", root);
	assert_string_equal(path, wanted);
	assert_int_equal(stat(path, &st), 0);
	assert_int_equal(st.st_size, 5000);
	assert_int_equal(st.st_mode & 07777, 0640);
	for (int i = 0; i < 3; i++) {
		*strrchr(path, '/') = '\0';
		assert_int_equal(stat(path, &st), 0);
		assert_int_equal(st.st_mode & 07777, 0750);
	}
	store_count(store, &counters);
	assert_int_equal(counters.written, 1);
	assert_int_equal(counters.written_bytes, 5000);
	assert_true(counters.disk_bytes >= disk_use());
	store_close(store);
	clear();
}

static void no_name_is_given_twice(void **state)
{
	struct store *store = open_store(1 << 20);
	char path[2][PATH_MAX];

	assert_int_equal(publish_at(store, "a", "0001", 7, 1795342500, 10, path[0]), 0);
	assert_int_equal(publish_at(store, "a", "0002", 7, 1795342500, 10, path[1]), 0);
	assert_non_null(strstr(path[1], "/101500.7.heap-2.pb.gz"));
	assert_int_equal(publish_at(store, "a", "0003", 7, 1795342501, 10, path[1]), 0);
	assert_non_null(strstr(path[1], "/101501.7.heap.pb.gz"));
	for (int i = 0; i < 5000; i++)
		assert_int_equal(
		    store_claim(store,
		        &(const struct store_claim){
		            .service = "a", .snapshot = "0001", .pid = 7, .time_s = 1795342500 + i / 2},
		        path[1], PATH_MAX),
		    0);
	store_close(store);
	clear();
}

/* A peak is written again and again. */
static void a_file_that_is_replaced_counts_once(void **state)
{
	struct store *store = open_store(1 << 20);
	struct store_counters counters;
	char path[PATH_MAX];

	assert_int_equal(publish_at(store, "a", "peak", 7, time(NULL), 200000, path), 0);
	for (int i = 0; i < 50; i++)
		assert_int_equal(store_sink(store)->publish(store_sink(store), path, bytes, 200000), 0);
	store_count(store, &counters);
	assert_int_equal(counters.evicted, 0);
	assert_true(counters.disk_bytes >= disk_use() && counters.disk_bytes < 300000);
	store_close(store);
	clear();
}

static void only_names_of_the_store_are_written(void **state)
{
	static const char *const names[] = {"x.pb.gz", "../101500.1.heap.pb.gz", "a/b/101500.1.heap.pb.gz",
	    "a/2026-11-22/x.pb.gz", "../2026-11-22/101500.1.heap.pb.gz"};
	struct store *store = open_store(1 << 20);
	char path[PATH_MAX];

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		snprintf(path, sizeof(path), "%s/%s", root, names[i]);
		assert_int_equal(store_sink(store)->publish(store_sink(store), path, bytes, 10), -EINVAL);
	}
	store_close(store);
	clear();
}

/* ---- the budget */

static void the_budget_holds_at_every_step(void **state)
{
	struct store *store = open_store(1 << 20);
	struct store_counters counters;
	char path[PATH_MAX], services[][8] = {"a", "b", "c"};
	int64_t now_s = time(NULL);

	for (int i = 0; i < 600; i++) {
		assert_int_equal(publish_at(store, services[i % 3], i % 50 ? "0001" : "exit", 1 + i % 7,
		                     now_s - 600 + i, 3000 + (size_t)i * 7919 % 50000, path),
		    0);
		assert_true(is_there(path + strlen(root) + 1));
		assert_true(disk_use() <= 1 << 20);
	}
	store_count(store, &counters);
	assert_true(counters.disk_bytes <= 1 << 20 && counters.disk_bytes >= disk_use());
	assert_int_equal(counters.written, 600);
	assert_true(counters.evicted > 100);
	assert_int_equal(counters.failed, 0);
	assert_int_equal(counters.stuck, 0);
	store_close(store);
	clear();
}

/* As the writer's children do. */
static void the_budget_holds_beside_each_other(void **state)
{
	struct store *store = open_store(1 << 20);
	struct store_counters counters;
	int64_t now_s = time(NULL);
	int running = 3, status;

	for (int child = 0; child < 3; child++) {
		if (fork() != 0)
			continue;
		for (int i = 0; i < 150; i++) {
			char path[PATH_MAX];

			if (publish_at(store, "a", "0001", 10 + child, now_s - 200 + i, 20000, path) != 0)
				_exit(1);
		}
		_exit(0);
	}
	while (running) {
		assert_true(disk_use() <= 1 << 20);
		for (pid_t pid; running && (pid = waitpid(-1, &status, WNOHANG)) > 0; running--)
			assert_int_equal(status, 0);
	}
	store_count(store, &counters);
	assert_int_equal(counters.written, 450);
	assert_true(counters.disk_bytes >= disk_use());
	store_close(store);
	clear();
}

static void what_does_not_fit_at_all_is_refused(void **state)
{
	struct store *store = open_store(128 << 10);
	struct store_counters counters;
	char path[PATH_MAX];

	assert_int_equal(publish_at(store, "a", "0001", 7, time(NULL), 10000, path), 0);
	assert_int_equal(publish_at(store, "a", "0002", 7, time(NULL), 200000, path), -EDQUOT);
	assert_false(is_there(path + strlen(root) + 1));
	store_count(store, &counters);
	assert_int_equal(counters.failed, 1);
	store_close(store);
	clear();
}

static void files_are_thinned_and_expire_when_it_is_opened(void **state)
{
	struct store_counters counters;
	struct store *store;

	put_file("a/2020-01-01/101500.7.exit.pb.gz");
	put_file("a/2020-01-02/101500.7.heap.pb.gz");
	put_file("b/2020-01-01/101500.7.heap.pb.gz");
	put_file("b/2020-01-01/notes.txt");
	store = open_store(1 << 20);
	store_count(store, &counters);
	assert_int_equal(counters.evicted, 3);
	assert_false(is_there("a"));
	assert_false(is_there("b/2020-01-01/101500.7.heap.pb.gz"));
	assert_true(is_there("b/2020-01-01/notes.txt"));
	store_close(store);
	clear();
}

static void limits_can_change(void **state)
{
	struct store *store = open_store(1 << 20);
	struct store_settings settings = {.path = root, .disk_bytes = 200 << 10, .days = 7};
	char path[PATH_MAX];

	for (int i = 0; i < 40; i++)
		assert_int_equal(publish_at(store, "a", "0001", 7, time(NULL) - 40 + i, 20000, path), 0);
	assert_true(disk_use() > 500 << 10);
	assert_false(store_is_overdue(store, time(NULL)));
	assert_int_equal(store_change(store, &settings), 0);
	assert_true(store_is_overdue(store, time(NULL)));
	assert_int_equal(store_thin(store), 0);
	assert_true(disk_use() <= 200 << 10);
	assert_false(store_is_overdue(store, time(NULL)));
	store_close(store);
	clear();
}

/* Who has forked before looks by the limits of then: that was not the look that is wanted. */
static void a_look_by_older_limits_does_not_count(void **state)
{
	struct store *store = open_store(1 << 20);
	const struct store_settings settings = {.path = root, .disk_bytes = 200 << 10, .days = 7};
	char path[PATH_MAX], go;
	int pipes[2], status;

	assert_int_equal(pipe(pipes), 0);
	const pid_t child = fork();
	if (child == 0) {
		if (read(pipes[0], &go, 1) == 1)
			store_thin(store);
		_exit(0);
	}
	for (int i = 0; i < 40; i++)
		assert_int_equal(publish_at(store, "a", "0001", 7, time(NULL) - 40 + i, 20000, path), 0);
	assert_int_equal(store_change(store, &settings), 0);
	assert_int_equal(store_thin(store), 0);
	assert_int_equal(store_change(store, &settings), 0);
	assert_int_equal(write(pipes[1], "", 1), 1);
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_true(store_is_overdue(store, time(NULL)));
	close(pipes[0]);
	close(pipes[1]);
	store_close(store);
	clear();
}

/* Nothing is published: ten minutes later somebody has to look. */
static void a_store_that_rests_is_overdue(void **state)
{
	struct store *store = open_store(1 << 20);
	const int64_t now_s = time(NULL);

	assert_false(store_is_overdue(store, now_s + 300));
	assert_true(store_is_overdue(store, now_s + 605));
	assert_true(store_is_overdue(store, now_s - 3600)); /* the clock was set back */
	store_close(store);
	clear();
}

/* ---- names that processes choose */

static int name_count, victim_count;

static int count_names(const char *path, const struct stat *st, int flag, struct FTW *at)
{
	name_count += flag == FTW_D && at->level == 1;
	victim_count += flag == FTW_F && strstr(path, "/victim/") != NULL;
	return 0;
}

static void look_at_names(void)
{
	name_count = victim_count = 0;
	nftw(root, count_names, 16, FTW_PHYS);
}

static int publish_as(
    struct store *store, const char *service, const char *owner, int64_t time_s, size_t length)
{
	const struct store_claim claim = {
	    .service = service, .owner = owner, .snapshot = "exit", .pid = 7, .time_s = time_s};
	char path[PATH_MAX];

	assert_int_equal(store_claim(store, &claim, path, PATH_MAX), 0);
	return store_sink(store)->publish(store_sink(store), path, bytes, length);
}

/* Each process with another name. In this store an owner may have eight of his own. */
static void many_names_do_not_push_out_the_others(void **state)
{
	struct store *store = open_store(1 << 20);
	const int64_t now_s = time(NULL);

	for (int i = 0; i < 8; i++)
		assert_int_equal(publish_as(store, "victim", "uid-999", now_s - 1000 + i, 4000), 0);
	for (int i = 0; i < 600; i++) {
		char name[16];

		snprintf(name, sizeof(name), "s%d", i);
		assert_int_equal(publish_as(store, name, "uid-1000", now_s - 600 + i, 4000), 0);
		assert_true(disk_use() <= 1 << 20);
	}
	look_at_names();
	assert_int_equal(name_count, 1 + 8 + 1);
	assert_int_equal(victim_count, 8);
	assert_true(is_there("s7") && is_there("others.uid-1000") && !is_there("s8"));
	store_close(store);
	clear();
}

static void claim_as(
    struct store *store, const char *service, const char *owner, int64_t time_s, const char *below)
{
	const struct store_claim claim = {
	    .service = service, .owner = owner, .snapshot = "0001", .pid = 7, .time_s = time_s};
	char path[PATH_MAX], wanted[PATH_MAX];

	assert_int_equal(store_claim(store, &claim, path, PATH_MAX), 0);
	snprintf(wanted, sizeof(wanted), "%s/%s/", root, below);
	if (strncmp(path, wanted, strlen(wanted)) != 0)
		fail_msg("%s is not below %s", path, wanted);
}

static void names_of_others_and_of_before_do_not_count(void **state)
{
	struct store *store = open_store(1 << 20);
	const int64_t now_s = 1795342500, later_s = now_s + (int64_t)9 * 24 * 3600;
	char name[16];

	for (int i = 0; i < 9; i++) {
		snprintf(name, sizeof(name), "s%d", i);
		claim_as(store, name, "unit-a@", now_s, i < 8 ? name : "others.unit-a@");
	}
	claim_as(store, "mine", "uid-1", now_s, "mine");
	claim_as(store, "mine", "unit-a@", now_s, "mine"); /* there it is already */
	claim_as(store, "s8", NULL, now_s, "s8");          /* by the configuration */
	claim_as(store, "s7", "unit-a@", later_s - 1, "s7");
	claim_as(store, "s8", "unit-a@", later_s, "s8"); /* the other seven have expired */
	for (int i = 0; i < 7; i++) {
		snprintf(name, sizeof(name), "s%d", i);
		claim_as(store, name, "unit-a@", later_s, i < 6 ? name : "others.unit-a@");
	}
	store_close(store);
}

/* Folders alone would fill the store before midnight. */
static void folders_of_today_go_when_they_are_empty(void **state)
{
	struct store *store = open_store(1 << 20);
	const int64_t now_s = time(NULL);

	for (int i = 0; i < 400; i++) {
		char name[16];

		snprintf(name, sizeof(name), "s%d", i);
		assert_int_equal(publish_as(store, name, NULL, now_s - 600 + i, 4000), 0);
		assert_true(disk_use() <= 1 << 20);
	}
	store_close(store);
	clear();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(files_have_names_and_modes),
	    cmocka_unit_test(no_name_is_given_twice),
	    cmocka_unit_test(a_file_that_is_replaced_counts_once),
	    cmocka_unit_test(only_names_of_the_store_are_written),
	    cmocka_unit_test(the_budget_holds_at_every_step),
	    cmocka_unit_test(the_budget_holds_beside_each_other),
	    cmocka_unit_test(what_does_not_fit_at_all_is_refused),
	    cmocka_unit_test(files_are_thinned_and_expire_when_it_is_opened),
	    cmocka_unit_test(limits_can_change),
	    cmocka_unit_test(a_look_by_older_limits_does_not_count),
	    cmocka_unit_test(a_store_that_rests_is_overdue),
	    cmocka_unit_test(many_names_do_not_push_out_the_others),
	    cmocka_unit_test(names_of_others_and_of_before_do_not_count),
	    cmocka_unit_test(folders_of_today_go_when_they_are_empty),
	};

	if (!begin())
		return 1;
	return end(cmocka_run_group_tests(tests, NULL, NULL));
}
