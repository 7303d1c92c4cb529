/* SPDX-License-Identifier: Apache-2.0 */
#include "sampler/write/output.h"

#include <errno.h>
#include <limits.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

static const struct output_facts facts = {"/usr/bin/redis-server", 4711, "exit", 1700000000};

static void expands(const char *pattern, const char *wanted)
{
	char path[PATH_MAX];

	assert_int_equal(output_expand(pattern, &facts, "host.example", path, sizeof(path)), 0);
	assert_string_equal(path, wanted);
}

static void directives_are_filled_in(void **state)
{
	expands(OUTPUT_DEFAULT, "heaptap.redis-server.4711.exit.pb.gz");
	expands("%e%p%n%h%t%%", "redis-server4711exithost.example1700000000%");
	expands("plain", "plain");
	expands("a/%p/", "a/4711/heaptap.redis-server.4711.exit.pb.gz");
	expands("/%n", "/exit");
	expands("%%e", "%e");
}

/* A pattern without %n is the exit profile's name. */
static void other_snapshots_stand_beside_the_exit_profile(void **state)
{
	static const struct {
		const char *pattern, *snapshot, *wanted;
	} cases[] = {
	    {"heap.pb.gz", "exit", "heap.pb.gz"},
	    {"heap.pb.gz", "peak", "heap-peak.pb.gz"},
	    {"heap.pb.gz", "0001", "heap-0001.pb.gz"},
	    {"heap.pb.gz", "0001", "heap-0001-2.pb.gz"},
	    {"%%n", "peak", "%n-peak"},
	    {"%n.gz", "peak", "peak.gz"},
	    {"a/", "peak", "a/heaptap.x.1.peak.pb.gz"},
	    {"heap.pb.gz", "a/b c", "heap-b_c.pb.gz"},
	};
	struct output output = {0};
	char path[PATH_MAX];

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct output_facts other = {"x", 1, cases[i].snapshot, 0};

		if (i == 0 || strcmp(cases[i].pattern, cases[i - 1].pattern) != 0) {
			output_fini(&output);
			assert_int_equal(output_init(&output, cases[i].pattern), 0);
		}
		assert_int_equal(output_reserve(&output, &other, path, sizeof(path)), 0);
		assert_string_equal(path, cases[i].wanted);
	}
	output_fini(&output);
}

static void a_pid_that_is_not_known_is_no_number(void **state)
{
	char path[PATH_MAX];
	const struct output_facts child = {"x", 0, "exit", 0};

	assert_int_equal(output_expand("%e.%p", &child, "", path, sizeof(path)), 0);
	assert_string_equal(path, "x.unknown");
}

static void words_from_outside_cannot_leave_the_folder(void **state)
{
	static const struct {
		const char *program, *wanted;
	} cases[] = {
	    {"..", "_."},
	    {"../../etc/passwd", "passwd"},
	    {".hidden", "_hidden"},
	    {"-rf", "_rf"},
	    {"", "unknown"},
	    {NULL, "unknown"},
	    {"a b\nc\033[1m", "a_b_c__1m"},
	    {"trailing/", "unknown"},
	    {"\xc3\xa9t\xc3\xa9", "__t__"},
	    {"c++filt", "c++filt"},
	    {"%p", "_p"},
	};
	char path[PATH_MAX];

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct output_facts odd = {cases[i].program, 1, "exit", 0};

		assert_int_equal(output_expand("%e", &odd, "", path, sizeof(path)), 0);
		assert_string_equal(path, cases[i].wanted);
		odd = (struct output_facts){"x", 1, cases[i].program, 0};
		assert_int_equal(output_expand("%n", &odd, "", path, sizeof(path)), 0);
		assert_string_equal(path, cases[i].wanted);
	}
}

static void long_words_and_paths_are_bounded(void **state)
{
	char word[300], path[200];
	struct output_facts odd = {word, 1, "exit", 0};

	memset(word, 'w', sizeof(word) - 1);
	word[sizeof(word) - 1] = '\0';
	assert_int_equal(output_expand("%e", &odd, "", path, sizeof(path)), 0);
	assert_int_equal(strlen(path), OUTPUT_WORD_BYTES);
	assert_int_equal(output_expand("%e%e%e%e", &odd, "", path, sizeof(path)), -ENAMETOOLONG);
	assert_int_equal(output_expand("%e", &odd, "", path, OUTPUT_WORD_BYTES), -ENAMETOOLONG);
	assert_int_equal(output_expand("%e", &odd, "", path, OUTPUT_WORD_BYTES + 1), 0);
}

static void unknown_directives_are_refused(void **state)
{
	static const char *const bad[] = {"%x", "a%", "%%%", "", "%E", "%e.% p"};
	char path[PATH_MAX], error[200];

	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		assert_int_equal(output_check(bad[i], error, sizeof(error)), -EINVAL);
		assert_non_null(strstr(error, "%e %p %n %h %t %%"));
		assert_int_equal(output_expand(bad[i], &facts, "", path, sizeof(path)), -EINVAL);
	}
	assert_int_equal(output_check("%e%p%n%h%t%%/", NULL, 0), 0);
}

static void numbered(const char *path, const char *wanted)
{
	char result[PATH_MAX];

	assert_int_equal(output_number(path, 2, result, sizeof(result)), 0);
	assert_string_equal(result, wanted);
}

static void numbers_go_before_the_extension(void **state)
{
	char small[8];

	numbered("a/heap.pb.gz", "a/heap-2.pb.gz");
	numbered("heap.1.exit.pb.gz", "heap.1.exit-2.pb.gz");
	numbered("heap.json", "heap-2.json");
	numbered("heap.tar.gz", "heap.tar-2.gz");
	numbered("heap", "heap-2");
	numbered("a.b/heap", "a.b/heap-2");
	numbered("a/.hidden", "a/.hidden-2");
	numbered(".pb.gz", ".pb-2.gz");
	assert_int_equal(output_number("heap.gz", 2, small, sizeof(small)), -ENAMETOOLONG);
}

static void a_name_is_given_out_once(void **state)
{
	struct output output;
	char path[PATH_MAX], wanted[64];

	assert_int_equal(output_init(&output, "x.pb.gz"), 0);
	for (int i = 1; i <= 500; i++) {
		if (i == 1)
			snprintf(wanted, sizeof(wanted), "x.pb.gz");
		else
			snprintf(wanted, sizeof(wanted), "x-%d.pb.gz", i);
		assert_int_equal(output_reserve(&output, &facts, path, sizeof(path)), 0);
		assert_string_equal(path, wanted);
	}
	output_fini(&output);
}

static void a_numbered_name_may_be_somebodys_own(void **state)
{
	struct output_facts own = {"x", 1, "x-2", 0}, plain = {"x", 1, "x", 0};
	struct output output;
	char path[PATH_MAX];

	assert_int_equal(output_init(&output, "%n.gz"), 0);
	assert_int_equal(output_reserve(&output, &own, path, sizeof(path)), 0);
	assert_string_equal(path, "x-2.gz");
	assert_int_equal(output_reserve(&output, &plain, path, sizeof(path)), 0);
	assert_string_equal(path, "x.gz");
	assert_int_equal(output_reserve(&output, &plain, path, sizeof(path)), 0);
	assert_string_equal(path, "x-3.gz");
	assert_int_equal(output_reserve(&output, &own, path, sizeof(path)), 0);
	assert_string_equal(path, "x-2-2.gz");
	output_fini(&output);
}

static void many_names_stay_apart(void **state)
{
	struct output output;
	char path[PATH_MAX], wanted[64];

	assert_int_equal(output_init(&output, "%p.gz"), 0);
	for (int round = 1; round <= 2; round++) {
		for (int pid = 1; pid <= 20000; pid++) {
			struct output_facts each = {"x", pid, "exit", 0};

			snprintf(wanted, sizeof(wanted), round == 1 ? "%d.gz" : "%d-2.gz", pid);
			assert_int_equal(output_reserve(&output, &each, path, sizeof(path)), 0);
			assert_string_equal(path, wanted);
		}
	}
	output_fini(&output);
}

static void directories_take_the_default_name(void **state)
{
	char folder[] = "/tmp/heaptap-unit.XXXXXX", percent[64], path[PATH_MAX], wanted[PATH_MAX];
	struct output output;

	assert_non_null(mkdtemp(folder));
	assert_int_equal(output_init(&output, folder), 0);
	assert_int_equal(output_reserve(&output, &facts, path, sizeof(path)), 0);
	snprintf(wanted, sizeof(wanted), "%s/heaptap.redis-server.4711.exit.pb.gz", folder);
	assert_string_equal(path, wanted);
	output_fini(&output);

	snprintf(percent, sizeof(percent), "%s/", folder);
	assert_int_equal(output_init(&output, percent), 0);
	assert_int_equal(output_reserve(&output, &facts, path, sizeof(path)), 0);
	assert_string_equal(path, wanted);
	output_fini(&output);

	snprintf(percent, sizeof(percent), "%s/100%%p", folder);
	assert_int_equal(mkdir(percent, 0700), 0);
	assert_int_equal(output_init(&output, percent), 0);
	assert_int_equal(output_reserve(&output, &facts, path, sizeof(path)), 0);
	snprintf(wanted, sizeof(wanted), "%s/heaptap.redis-server.4711.exit.pb.gz", percent);
	assert_string_equal(path, wanted);
	output_fini(&output);

	assert_int_equal(output_init(&output, NULL), 0);
	assert_int_equal(output_reserve(&output, &facts, path, sizeof(path)), 0);
	assert_string_equal(path, "heaptap.redis-server.4711.exit.pb.gz");
	output_fini(&output);
	rmdir(percent);
	rmdir(folder);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(directives_are_filled_in),
	    cmocka_unit_test(other_snapshots_stand_beside_the_exit_profile),
	    cmocka_unit_test(a_pid_that_is_not_known_is_no_number),
	    cmocka_unit_test(words_from_outside_cannot_leave_the_folder),
	    cmocka_unit_test(long_words_and_paths_are_bounded),
	    cmocka_unit_test(unknown_directives_are_refused),
	    cmocka_unit_test(numbers_go_before_the_extension),
	    cmocka_unit_test(a_name_is_given_out_once),
	    cmocka_unit_test(a_numbered_name_may_be_somebodys_own),
	    cmocka_unit_test(many_names_stay_apart),
	    cmocka_unit_test(directories_take_the_default_name),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
