/* SPDX-License-Identifier: Apache-2.0 */
/* The crash-loop guard: what counts, when it denies, and what its file says. */
#include "sampler/cmd/daemon/crash_guard.h"

#include <limits.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

static const uint64_t second = 1000000000;

enum { USER = 1000 };

static const struct crash_guard_denied *die_as(
    struct crash_guard *guard, uid_t uid, const char *exe, int number, uint64_t age_s, uint64_t at_s)
{
	const struct crash_guard_death death = {
	    .exe = exe,
	    .library = "abcd",
	    .uid = uid,
	    .signal = number,
	    .age_ns = age_s * second,
	    .now_ns = at_s * second,
	    .now_unix_ns = (int64_t)(at_s * second),
	};

	return crash_guard_note(guard, &death);
}

static const struct crash_guard_denied *die(
    struct crash_guard *guard, const char *exe, int number, uint64_t age_s, uint64_t at_s)
{
	return die_as(guard, USER, exe, number, age_s, at_s);
}

static void test_three_deaths_deny(void **state)
{
	struct crash_guard *guard = crash_guard_new();

	(void)state;
	assert_null(die(guard, "/a", SIGSEGV, 1, 1000));
	assert_null(die(guard, "/b", SIGSEGV, 1, 1001));
	assert_null(die(guard, "/a", SIGABRT, 30, 1100));
	assert_null(die(guard, "/a", SIGTERM, 1, 1101)); /* no crash */
	assert_null(die(guard, "/a", SIGKILL, 1, 1102));
	assert_null(die(guard, "/a", SIGSEGV, 31, 1103)); /* long after profiling began */
	assert_null(crash_guard_find(guard, "/a", "abcd", USER));
	const struct crash_guard_denied *denied = die(guard, "/a", SIGSYS, 0, 1600);
	assert_non_null(denied);
	assert_string_equal(denied->exe, "/a");
	assert_non_null(strstr(denied->reason, "SIGSYS"));
	assert_ptr_equal(crash_guard_find(guard, "/a", "abcd", USER), denied);
	assert_null(crash_guard_find(guard, "/a", "ef01", USER)); /* another library */
	assert_null(crash_guard_find(guard, "/b", "abcd", USER));
	assert_null(die(guard, "/a", SIGSEGV, 1, 1601)); /* once */
	assert_int_equal(crash_guard_count(guard), 1);
	crash_guard_free(guard);
}

/* Anybody may execute root's programs, and kill them. */
static void test_a_users_deaths_are_its_own(void **state)
{
	struct crash_guard *guard = crash_guard_new();

	(void)state;
	assert_null(die_as(guard, 0, "/a", SIGSEGV, 1, 1000));
	for (int i = 0; i < 5; i++)
		(void)die_as(guard, USER, "/a", SIGSEGV, 1, 1000);
	assert_non_null(crash_guard_find(guard, "/a", "abcd", USER));
	assert_null(crash_guard_find(guard, "/a", "abcd", 0));
	assert_null(die_as(guard, 0, "/a", SIGSEGV, 1, 1001));
	assert_non_null(die_as(guard, 0, "/a", SIGSEGV, 1, 1002));
	crash_guard_free(guard);
}

static void test_deaths_are_forgotten(void **state)
{
	struct crash_guard *guard = crash_guard_new();

	(void)state;
	for (uint64_t at = 1000; at < 10000; at += 301)
		assert_null(die(guard, "/a", SIGBUS, 1, at));
	crash_guard_free(guard);
}

static void test_file(void **state)
{
	struct crash_guard *guard = crash_guard_new(), *other = crash_guard_new();
	size_t bytes;

	(void)state;
	for (int i = 0; i < 3; i++)
		die(guard, "/opt/a b%\n1 2 3\tx", SIGSEGV, 1, 1000);
	for (int i = 0; i < 3; i++)
		die(guard, "/usr/bin/\xff", SIGSEGV, 1, 1000);
	char *text = crash_guard_text(guard, &bytes);
	assert_non_null(text);
	assert_int_equal(strlen(text), bytes);
	assert_int_equal(crash_guard_parse(other, text), 0);
	assert_int_equal(crash_guard_count(other), 2);
	for (size_t i = 0; i < 2; i++) {
		const struct crash_guard_denied *a = crash_guard_at(guard, i), *b = crash_guard_at(other, i);

		assert_string_equal(a->exe, b->exe);
		assert_string_equal(a->reason, b->reason);
		assert_string_equal(a->library, b->library);
		assert_int_equal(a->uid, b->uid);
		assert_int_equal(a->since_unix_ns, b->since_unix_ns);
	}
	free(text);
	assert_int_equal(crash_guard_parse(other,
	                     "nonsense\n12\n12 \n12 ab\t/x\n12 ab r\t\n13 - why\t/x\n13 - 5 why\t/x\n\xff%"),
	    0);
	assert_int_equal(crash_guard_count(other), 1);
	assert_string_equal(crash_guard_at(other, 0)->library, "");
	assert_string_equal(crash_guard_at(other, 0)->reason, "why");
	assert_int_equal(crash_guard_at(other, 0)->uid, 5);
	assert_int_equal(crash_guard_load(other, "no/such/file"), 0);
	assert_int_equal(crash_guard_count(other), 0);
	crash_guard_free(guard);
	crash_guard_free(other);
}

static void test_bounded(void **state)
{
	struct crash_guard *guard = crash_guard_new();

	(void)state;
	for (int i = 0; i < CRASH_GUARD_DENIED_MAX + 10; i++) {
		char exe[32];

		snprintf(exe, sizeof(exe), "/bin/%d", i);
		for (int n = 0; n < 3; n++)
			die(guard, exe, SIGSEGV, 1, 1000);
	}
	assert_int_equal(crash_guard_count(guard), CRASH_GUARD_DENIED_MAX);
	assert_null(crash_guard_find(guard, "/bin/9", "abcd", USER));
	assert_non_null(crash_guard_find(guard, "/bin/10", "abcd", USER));
	crash_guard_free(guard);
}

/* Neither what is denied nor what has died is another user's to push out. */
static void test_a_share_for_each_user(void **state)
{
	struct crash_guard *guard = crash_guard_new();
	char exe[32];

	(void)state;
	for (int n = 0; n < 3; n++)
		(void)die_as(guard, 33, "/usr/sbin/apache2", SIGSEGV, 1, 1000);
	assert_null(die_as(guard, 34, "/usr/sbin/other", SIGSEGV, 1, 1000));
	for (int i = 0; i < 2 * CRASH_GUARD_DENIED_MAX; i++) {
		snprintf(exe, sizeof(exe), "/bin/%d", i);
		for (int n = 0; n < 3; n++)
			die(guard, exe, SIGSEGV, 1, 1000);
	}
	assert_non_null(crash_guard_find(guard, "/usr/sbin/apache2", "abcd", 33));
	assert_null(die_as(guard, 34, "/usr/sbin/other", SIGSEGV, 1, 1001));
	assert_non_null(die_as(guard, 34, "/usr/sbin/other", SIGSEGV, 1, 1002));
	assert_int_equal(crash_guard_count(guard), CRASH_GUARD_DENIED_MAX);
	crash_guard_free(guard);
}

/* Whatever paths there are: else the next daemon would deny nobody. */
static void test_a_full_file_is_read_again(void **state)
{
	struct crash_guard *guard = crash_guard_new(), *other = crash_guard_new();
	char path[] = "/tmp/heaptap-guard-XXXXXX", exe[PATH_MAX];

	(void)state;
	close(mkstemp(path));
	memset(exe, '%', sizeof(exe));
	exe[sizeof(exe) - 1] = '\0';
	for (int i = 0; i < CRASH_GUARD_DENIED_MAX; i++) {
		exe[snprintf(exe, 16, "/%d", i)] = '%';
		for (int n = 0; n < 3; n++)
			die(guard, exe, SIGSEGV, 1, 1000);
	}
	assert_int_equal(crash_guard_save(guard, path, 1, false), 0);
	assert_int_equal(crash_guard_load(other, path), 0);
	assert_int_equal(crash_guard_count(other), CRASH_GUARD_DENIED_MAX);
	assert_non_null(crash_guard_find(other, exe, "abcd", USER));
	unlink(path);
	crash_guard_free(guard);
	crash_guard_free(other);
}

/* A user who has many programs denied has not the daemon wait for the disk each time; and what the file has
 * not got is not lost when it is read. */
static void test_the_file_is_not_written_all_the_time(void **state)
{
	struct crash_guard *guard = crash_guard_new(), *other = crash_guard_new();
	char path[] = "/tmp/heaptap-guard-XXXXXX", exe[32];
	uint64_t now_ns = 100 * second;
	int writes = 0;

	(void)state;
	close(mkstemp(path));
	for (int i = 0; i < 60; i++, now_ns += second / 2) {
		snprintf(exe, sizeof(exe), "/bin/%d", i);
		for (int n = 0; n < 3; n++)
			die(guard, exe, SIGSEGV, 1, 1000);
		unlink(path);
		assert_int_equal(crash_guard_save(guard, path, now_ns, false), 0);
		writes += access(path, F_OK) == 0;
	}
	assert_in_range(writes, 5, 7);
	assert_int_equal(crash_guard_load(guard, "no/such/file"), 0);
	assert_in_range(crash_guard_count(guard), 1, 12);
	assert_non_null(crash_guard_find(guard, exe, "abcd", USER));
	assert_int_equal(crash_guard_save(guard, path, now_ns, true), 0);
	assert_int_equal(crash_guard_load(other, path), 0);
	assert_int_equal(crash_guard_count(other), crash_guard_count(guard));
	assert_int_equal(crash_guard_load(guard, "no/such/file"), 0);
	assert_int_equal(crash_guard_count(guard), 0);
	unlink(path);
	crash_guard_free(guard);
	crash_guard_free(other);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_three_deaths_deny),
	    cmocka_unit_test(test_a_users_deaths_are_its_own),
	    cmocka_unit_test(test_deaths_are_forgotten),
	    cmocka_unit_test(test_file),
	    cmocka_unit_test(test_bounded),
	    cmocka_unit_test(test_a_share_for_each_user),
	    cmocka_unit_test(test_a_full_file_is_read_again),
	    cmocka_unit_test(test_the_file_is_not_written_all_the_time),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
