/* SPDX-License-Identifier: Apache-2.0 */
/* Which programs --only and --exclude choose. */
#include "sampler/books/choice.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

static bool takes(const char *only, const char *exclude, const char *path, const char *line)
{
	struct choice *choice;
	char error[256];

	assert_int_equal(choice_new(only, exclude, &choice, error, sizeof(error)), 0);
	bool answer = choice_takes(choice, path, line);
	choice_free(choice);
	return answer;
}

static void without_expressions_all(void **state)
{
	(void)state;
	assert_true(takes(NULL, NULL, "/bin/true", "true"));
}

static void the_name(void **state)
{
	(void)state;
	assert_true(takes("redis", NULL, "/usr/bin/redis-server", "redis-server *:6379"));
	assert_true(takes("^redis-server$", NULL, "/usr/bin/redis-server", "/usr/bin/redis-server *:6379"));
	assert_false(takes("^server$", NULL, "/usr/bin/redis-server", "redis-server *:6379"));
	assert_false(takes("usr", NULL, "/usr/bin/redis-server", "/usr/bin/redis-server"));
	assert_true(takes("^x.py$", NULL, "./x.py", "/usr/bin/python3 ./x.py")); /* a script */
	assert_true(takes("^python3", NULL, "./x.py", "/usr/bin/python3 ./x.py"));
	assert_true(takes("sh$|^ls", NULL, "/bin/ls", "ls -l"));
	assert_false(takes("ls|sh", NULL, "/bin/true", "true sh ls"));
	assert_true(takes("^true$", NULL, "/bin/true", "")); /* its command line is not known */
	assert_false(takes("true", NULL, "", ""));
}

/* The match begins in the first word, so that a shell is not chosen by what it runs. */
static void the_command_line(void **state)
{
	(void)state;
	assert_true(
	    takes("python3 .*manage.py", NULL, "/usr/bin/python3", "/usr/bin/python3 -m a/manage.py run"));
	assert_true(takes("^python3 .*manage.py run$", NULL, "/usr/bin/python3", "python3 /a/manage.py run"));
	assert_false(takes("manage.py", NULL, "/usr/bin/python3", "python3 manage.py"));
	assert_false(takes("^manage.py", NULL, "/usr/bin/python3", "python3 manage.py"));
	assert_false(takes("python3", NULL, "/bin/sh", "sh -c python3"));
}

static void excluded(void **state)
{
	(void)state;
	assert_false(takes(NULL, "^(ba)?sh$", "/bin/bash", "bash x"));
	assert_true(takes(NULL, "^(ba)?sh$", "/bin/dash", "dash x"));
	assert_false(takes("python", "python3 .*idle", "/usr/bin/python3", "python3 x/idle.py"));
	assert_true(takes("python", "python3 .*idle", "/usr/bin/python3", "python3 x.py"));
}

static void broken_ones_are_named(void **state)
{
	struct choice *choice;
	char error[256];

	(void)state;
	assert_int_equal(choice_new("a(", NULL, &choice, error, sizeof(error)), -EINVAL);
	assert_null(choice);
	assert_string_equal(
	    error, "--only: 'a(' is not a regular expression (missing closing parenthesis, at character 3)");
	assert_int_equal(choice_new("a", "a)(b", &choice, error, sizeof(error)), -EINVAL);
	assert_memory_equal(error, "--exclude: 'a)(b' is", 20);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(without_expressions_all),
	    cmocka_unit_test(the_name),
	    cmocka_unit_test(the_command_line),
	    cmocka_unit_test(excluded),
	    cmocka_unit_test(broken_ones_are_named),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
