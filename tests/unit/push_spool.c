/* SPDX-License-Identifier: Apache-2.0 */
/* The spool of heaptap-push in a folder: its budget, who adds and who sends, what a crash leaves, what is
 * told of it to others. */
#include "pprof/analysis/since.h"
#include "pprof/model/profile.h"
#include "pprof/store/spool_files.h"
#include "push/spool.h"
#include "push/target.h"

#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
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
	struct spool_list list = {0}, again;
	struct spool spool;
	size_t bytes;
	char *text;

	open_spool(&spool, 1 << 20);
	add(&spool, 7, INT64_C(50000000000), 100);
	add(&spool, 8, INT64_C(40000000000), 23);
	spool.counters.dropped = 3;
	spool.counters.given_up = 4;
	spool.counters.passed_over = 5;
	spool.counters.denied = 6;
	spool_sending(&spool);
	spool_sent(&spool);
	add(&spool, 9, INT64_C(60000000000), 1000);
	assert_int_equal(spool_list_add(&list, folder), 0);
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
	assert_int_equal(spool_list_add(&list, "/nowhere"), 0);
	assert_int_equal(list.count, 0);
	assert_true(reads_as(&list, "a 1 2 3 4 5 6 7 8 9 10 11\n"));
	assert_false(reads_as(&list, "a 1 2 3 4 5 6 7 8 9 10 11"));
	assert_false(reads_as(&list, "a 1 2 3 4 5 6 7 8 9 10\n"));
	assert_false(reads_as(&list, "a 1 2 3 4 5 6 7 8 9 10 11 12\n"));
	assert_false(reads_as(&list, "../a 1 2 3 4 5 6 7 8 9 10 11\n"));
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
	struct since since;
	bool known = spool_taken(spool, process) != 0;

	assert_int_equal(spool_accepted(spool, process, &since), 0);
	known = known || since.time_ns;
	profile_free((struct profile *)since.first);
	return known;
}

/* What was half written when somebody was killed goes, but not what may be written now. */
static void what_is_half_written_is_removed(void **state)
{
	static const char *const folders[] = {"one", "one/state", "one/rejected"};
	const struct timespec old[] = {{.tv_sec = time(NULL) - 90}, {.tv_sec = time(NULL) - 90}};
	char paths[3][3][PATH_MAX];
	struct spool spool;
	FILE *file;

	open_spool(&spool, 1 << 20);
	add(&spool, 7, 1, 100);
	spool_reject(&spool, "no");
	for (size_t i = 0; i < 3; i++) {
		snprintf(paths[i][0], PATH_MAX, "%s/%s/.heaptap-0123456789abcdef.tmp", folder, folders[i]);
		snprintf(paths[i][1], PATH_MAX, "%s/%s/.heaptap-0123456789abcde0.tmp", folder, folders[i]);
		snprintf(paths[i][2], PATH_MAX, "%s/%s/other.tmp", folder, folders[i]);
		for (size_t j = 0; j < 3; j++) {
			file = fopen(paths[i][j], "w");
			assert_non_null(file);
			fclose(file);
			if (j != 1)
				assert_int_equal(utimensat(AT_FDCWD, paths[i][j], old, 0), 0);
		}
	}
	spool_tidy(&spool);
	for (size_t i = 0; i < 3; i++) {
		assert_int_equal(access(paths[i][0], F_OK), -1);
		assert_int_equal(access(paths[i][1], F_OK), 0);
		assert_int_equal(access(paths[i][2], F_OK), 0);
	}
	spool_close(&spool);
}

/* A profile is added, and acknowledged. */
static void accept(struct spool *spool, uint64_t process, bool last, const struct profile *kept)
{
	struct spool_entry entry = {.time_ns = 5, .process = process, .last = last};

	assert_int_equal(spool_add(spool, &entry, "x", 1), 0);
	assert_int_equal(spool_accept_head(spool, kept), 0);
	spool_sent(spool);
	assert_int_equal(spool->count, 0);
}

static struct profile *make_kept(void)
{
	struct profile *profile = profile_new();

	profile_add_sample_type(profile, "alloc_space", "bytes");
	profile_set_time(profile, 5, 0);
	assert_int_equal(profile_error(profile), 0);
	return profile;
}

static void what_was_accepted_is_read_again(void **state)
{
	/* As heaptap wrote it before 28 November 2026. */
	static const char table[168] = "htdelta1";
	struct profile *kept = make_kept();
	struct spool spool;
	struct since since;

	(void)state;
	open_spool(&spool, 1 << 20);
	assert_int_equal(spool_accepted(&spool, 1, &since), 0);
	assert_true(!since.first && !since.unknown && !since.time_ns);
	for (int again = 0; again < 2; again++) {
		accept(&spool, 1, false, kept);
		assert_int_equal(spool_accepted(&spool, 1, &since), 0);
		assert_true(since.first && !since.unknown);
		assert_int_equal(since.time_ns, 5);
		profile_free((struct profile *)since.first);
	}
	/* Of the last profile of a process only the time is kept. */
	accept(&spool, 1, true, NULL);
	assert_int_equal(spool_accepted(&spool, 1, &since), 0);
	assert_true(!since.first && !since.unknown);
	assert_int_equal(since.time_ns, 5);
	assert_int_equal(
	    spool_write(spool.state_fd, "0000000000000002.accepted", table, sizeof(table), 0), 0);
	assert_int_equal(spool_accepted(&spool, 2, &since), 0);
	assert_true(!since.first && since.unknown);
	profile_free(kept);
	spool_close(&spool);
}

/* Notes of what has ended go soon, those of what may go on later, and those of what waits never. */
static void what_is_over_is_forgotten(void **state)
{
	const int64_t second_ns = 1000000000;
	struct profile *kept = make_kept();
	struct spool spool;

	open_spool(&spool, 1 << 20);
	for (uint64_t process = 1; process <= 4; process++) {
		assert_int_equal(spool_take(&spool, process, 1), 0);
		accept(&spool, process, process % 2, kept);
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
	profile_free(kept);
	spool_close(&spool);
}

/* The name of the spool for these options, "name=value" each; static. */
static const char *name_with(const char *const options[])
{
	static char name[SPOOL_NAME_TARGET_BYTES];
	char option[64], error[512];
	struct target target;

	target_init(&target);
	for (size_t i = 0; options[i]; i++) {
		size_t length = strcspn(options[i], "=");

		snprintf(option, sizeof(option), "%.*s", (int)length, options[i]);
		assert_int_equal(
		    target_set(&target, option, options[i] + length + 1, error, sizeof(error)), 0);
	}
	target_name_spool(&target, "record-");
	strcpy(name, target.name);
	target_fini(&target);
	assert_true(spool_name_is_target(name));
	return name;
}

/* What one session leaves is sent by the next one as its own. */
static void sessions_share_a_spool_only_with_equals(void **state)
{
	char long_url[URL_BYTES] = "url=parca+http://", names[16][SPOOL_NAME_TARGET_BYTES];
	const char *const others[][4] = {
	    {"url=parca+http://h"},
	    {"url=parca+http://h/one"},
	    {"url=parca+http://h/two"},
	    {"url=parca+http://h", "tenant=a"},
	    {"url=parca+http://h", "tenant=b"},
	    {"url=parca+http://h", "user=a"},
	    {"url=parca+http://h", "token-file=a"},
	    {"url=parca+http://h", "types=a"},
	    {"url=parca+http://h", "label=a=b"},
	    {"url=parca+http://h", "label=a=c"},
	    {"url=parca+http://h", "tenant=a", "label=a=b"},
	    {long_url},
	};
	const size_t count = sizeof(others) / sizeof(others[0]);

	memset(long_url + strlen(long_url), 'h', 200);
	for (size_t i = 0; i < count; i++) {
		strcpy(names[i], name_with(others[i]));
		assert_string_equal(names[i], name_with(others[i]));
		for (size_t j = 0; j < i; j++)
			assert_string_not_equal(names[i], names[j]);
	}
	assert_string_equal(names[0], "record-parca-h-80");
	assert_string_equal(names[0],
	    name_with((const char *const[]){"url=parca+http://h/", "timeout=5s", "spool=9M", NULL}));
	long_url[strlen(long_url) - 1] = 'i';
	assert_string_not_equal(names[count - 1], name_with(others[count - 1]));
	/* A relative path is one in this folder. */
	assert_int_equal(chdir(folder), 0);
	assert_string_not_equal(names[6], name_with(others[6]));
}

/* A spool that is not needed any more goes, but with nothing that is. */
static void an_empty_spool_is_removed(void **state)
{
	struct spool spool, other;

	open_spool(&spool, 1 << 20);
	add(&spool, 7, 1, 100);
	assert_int_equal(spool_take(&spool, 7, 1), 0);
	spool_sending(&spool);
	spool_remove(&spool);
	assert_int_equal(access(spool.path, F_OK), 0);
	spool_close(&spool);
	open_spool(&spool, 1 << 20);
	assert_int_equal(spool.count, 1);
	spool_sent(&spool);
	open_spool(&other, 1 << 20);
	spool_remove(&spool);
	assert_int_equal(access(spool.path, F_OK), 0);
	spool_close(&spool);
	spool_remove(&other);
	assert_int_equal(access(spool.path, F_OK), 0); /* the other only adds */
	assert_true(spool_lock(&other));
	spool_remove(&other);
	assert_int_equal(access(spool.path, F_OK), -1);
	spool_close(&other);
	open_spool(&spool, 1 << 20);
	add(&spool, 7, 1, 100);
	spool_reject(&spool, "no");
	spool_remove(&spool);
	assert_int_equal(access(spool.path, F_OK), 0);
	spool_close(&spool);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test_setup_teardown(others_see_what_waits, make_folder, remove_folder),
	    cmocka_unit_test_setup_teardown(
	        an_attempt_without_an_answer_is_counted, make_folder, remove_folder),
	    cmocka_unit_test_setup_teardown(who_sends_sees_what_others_add, make_folder, remove_folder),
	    cmocka_unit_test_setup_teardown(what_is_half_written_is_removed, make_folder, remove_folder),
	    cmocka_unit_test_setup_teardown(what_was_accepted_is_read_again, make_folder, remove_folder),
	    cmocka_unit_test_setup_teardown(what_is_over_is_forgotten, make_folder, remove_folder),
	    cmocka_unit_test_setup_teardown(
	        sessions_share_a_spool_only_with_equals, make_folder, remove_folder),
	    cmocka_unit_test_setup_teardown(an_empty_spool_is_removed, make_folder, remove_folder),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
