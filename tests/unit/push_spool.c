/* SPDX-License-Identifier: Apache-2.0 */
/* The spool of heaptap-push in a folder: its budget, who adds and who sends, what a crash leaves, what is
 * told of it to others. */
#include "pprof/service/spool_list.h"
#include "push/spool.h"

#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

static char folder[PATH_MAX - 300];

static int make_folder(void **state)
{
	const char *base = getenv("TMPDIR");

	snprintf(folder, sizeof(folder), "%s/push-spool-XXXXXX", base ? base : "/tmp");
	return mkdtemp(folder) ? 0 : -1;
}

static int remove_folder(void **state)
{
	char command[PATH_MAX];

	snprintf(command, sizeof(command), "rm -rf '%s'", folder);
	return system(command);
}

static void open_spool(struct spool *spool, uint64_t budget_bytes)
{
	char path[PATH_MAX];

	snprintf(path, sizeof(path), "%s/one", folder);
	assert_int_equal(spool_open(spool, path, budget_bytes), 0);
}

static void add(struct spool *spool, uint64_t process, int64_t time_ns, size_t bytes)
{
	struct spool_entry entry = {.time_ns = time_ns, .process = process};
	char *content = calloc(1, bytes);

	assert_int_equal(spool_add(spool, &entry, content, bytes), 0);
	free(content);
}

static bool reads_as(struct spool_list *list, const char *text)
{
	int err = spool_list_parse(list, text, strlen(text));

	spool_list_fini(list);
	return !err;
}

static void others_see_what_waits(void **state)
{
	struct spool_list list, again;
	struct spool spool;
	size_t bytes;
	char *text;

	open_spool(&spool, 1 << 20);
	add(&spool, 7, INT64_C(50000000000), 100);
	add(&spool, 8, INT64_C(40000000000), 23);
	spool.counters.dropped = 3;
	spool.counters.given_up = 4;
	spool.counters.passed_over = 5;
	spool_sending(&spool);
	spool_sent(&spool);
	add(&spool, 9, INT64_C(60000000000), 1000);
	assert_int_equal(spool_list_read(&list, folder), 0);
	assert_int_equal(list.count, 1);
	assert_string_equal(list.rows[0].target, "one");
	assert_int_equal(list.rows[0].counters.sent, 1);
	assert_int_equal(list.rows[0].counters.dropped, 3);
	assert_int_equal(list.rows[0].count, 2);
	assert_int_equal(list.rows[0].bytes, 1023);
	assert_true(spool_list_age(&list.rows[0], INT64_C(100000000000)) == 60);
	assert_true(spool_list_age(&list.rows[0], 0) == 0);
	text = spool_list_print(&list, &bytes);
	assert_int_equal(spool_list_parse(&again, text, bytes), 0);
	assert_int_equal(again.count, 1);
	again.rows[0].counters.sending = list.rows[0].counters.sending;
	assert_memory_equal(&again.rows[0], &list.rows[0], sizeof(list.rows[0]));
	free(text);
	spool_list_fini(&again);
	spool_list_fini(&list);
	spool_close(&spool);
	/* No folder, no spools; and text that is none is not taken for one. */
	assert_int_equal(spool_list_read(&list, "/nowhere"), 0);
	assert_int_equal(list.count, 0);
	assert_true(reads_as(&list, "a 1 2 3 4 5 6 7 8 9 10\n"));
	assert_false(reads_as(&list, "a 1 2 3 4 5 6 7 8 9 10"));
	assert_false(reads_as(&list, "a 1 2 3 4 5 6 7 8 9\n"));
	assert_false(reads_as(&list, "a 1 2 3 4 5 6 7 8 9 10 11\n"));
	assert_false(reads_as(&list, "../a 1 2 3 4 5 6 7 8 9 10\n"));
}

/* What the server may have had already is counted when it is sent again: after an answer that never came, and
 * after a SIGKILL, but not after an answer. */
static void an_attempt_without_an_answer_is_counted(void **state)
{
	struct spool spool;
	uint64_t first;

	open_spool(&spool, 1 << 20);
	add(&spool, 7, 1, 10);
	first = spool_head(&spool)->number;
	spool_sending(&spool);
	spool_retried(&spool, false);
	spool_sending(&spool);
	assert_int_equal(spool.counters.resent, 0);
	spool_retried(&spool, true);
	spool_sending(&spool);
	assert_int_equal(spool.counters.resent, 1);
	/* Killed. */
	spool_close(&spool);
	open_spool(&spool, 1 << 20);
	assert_int_equal(spool.counters.sending, first);
	spool_sending(&spool);
	assert_int_equal(spool.counters.resent, 2);
	assert_int_equal(spool.counters.retried, 2);
	spool_sent(&spool);
	assert_int_equal(spool.counters.sending, 0);
	add(&spool, 7, 2, 10);
	spool_sending(&spool);
	assert_int_equal(spool.counters.resent, 2);
	spool_sent(&spool);
	spool_close(&spool);
}

/* One sends, the other adds; what it adds is seen by the first, and the budget is the first one's care. */
static void who_sends_sees_what_others_add(void **state)
{
	struct spool sender, other;

	open_spool(&sender, 1000);
	open_spool(&other, 1000);
	assert_true(sender.lock_fd >= 0);
	assert_true(other.lock_fd < 0);
	add(&other, 7, 1, 600);
	assert_int_equal(spool_look(&sender), 0);
	assert_int_equal(sender.count, 1);
	add(&other, 7, 2, 600);
	assert_int_equal(sender.count, 1);
	assert_int_equal(spool_look(&sender), 0);
	assert_int_equal(sender.count, 1);
	assert_int_equal(spool_head(&sender)->time_ns, 2);
	assert_int_equal(sender.counters.dropped, 1);
	spool_close(&sender);
	spool_close(&other);
	/* A smaller budget counts at once. */
	open_spool(&sender, 100);
	assert_int_equal(sender.count, 0);
	assert_int_equal(sender.counters.dropped, 2);
	spool_close(&sender);
}

static void age_files_by(const struct spool *spool, uint64_t process, int64_t seconds)
{
	static const char *const kinds[] = {"taken", "accepted"};
	char path[PATH_MAX];
	struct stat st;

	for (size_t i = 0; i < 2; i++) {
		snprintf(path, sizeof(path), "%s/state/%016llx.%s", spool->path, (unsigned long long)process,
		    kinds[i]);
		assert_int_equal(stat(path, &st), 0);
		st.st_mtim.tv_sec -= seconds;
		assert_int_equal(
		    utimensat(AT_FDCWD, path, (struct timespec[]){st.st_mtim, st.st_mtim}, 0), 0);
	}
}

static bool is_known(const struct spool *spool, uint64_t process)
{
	struct delta_table table;
	bool known = spool_taken(spool, process) != 0;

	assert_int_equal(spool_accepted(spool, process, &table), 0);
	known = known || table.time_ns;
	delta_table_fini(&table);
	return known;
}

/* Notes of what has ended go soon, those of what may go on later, and those of what waits never. */
static void what_is_over_is_forgotten(void **state)
{
	const int64_t second_ns = 1000000000;
	struct delta_row row = {.key = 1, .values = {5}};
	struct delta_table ended = {.time_ns = 1},
	                   live = {.time_ns = 1,
	                       .type_count = 1,
	                       .types = {"alloc_space"},
	                       .rows = &row,
	                       .count = 1};
	struct spool spool;

	open_spool(&spool, 1 << 20);
	for (uint64_t process = 1; process <= 4; process++) {
		assert_int_equal(spool_take(&spool, process, 1), 0);
		assert_int_equal(spool_accept(&spool, process, process % 2 ? &ended : &live), 0);
		age_files_by(&spool, process, 100);
	}
	add(&spool, 3, 2, 10);
	spool_forget(&spool, 1000 * second_ns, 200 * second_ns);
	for (uint64_t process = 1; process <= 4; process++)
		assert_true(is_known(&spool, process));
	spool_forget(&spool, 1000 * second_ns, 50 * second_ns);
	assert_false(is_known(&spool, 1));
	assert_true(is_known(&spool, 2) && is_known(&spool, 3) && is_known(&spool, 4));
	age_files_by(&spool, 2, 1000);
	spool_forget(&spool, 1000 * second_ns, 50 * second_ns);
	assert_false(is_known(&spool, 2));
	assert_true(is_known(&spool, 4));
	spool_close(&spool);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test_setup_teardown(others_see_what_waits, make_folder, remove_folder),
	    cmocka_unit_test_setup_teardown(
	        an_attempt_without_an_answer_is_counted, make_folder, remove_folder),
	    cmocka_unit_test_setup_teardown(who_sends_sees_what_others_add, make_folder, remove_folder),
	    cmocka_unit_test_setup_teardown(what_is_over_is_forgotten, make_folder, remove_folder),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
