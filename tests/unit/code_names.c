/* SPDX-License-Identifier: Apache-2.0 */
/* Names of functions made at run time that a later snapshot has. */
#include "pprof/analysis/code_names.h"

#include "pprof/model/profile.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

enum { ADDRESS = 4096 };

/* With one location, number 1. */
static struct profile *profile_with(int pid, int64_t time_ns, const char *name, const char *file)
{
	struct profile *p = profile_new();
	const struct profile_function function = {.name = name};
	const struct profile_line line = {.function = profile_add_function(p, &function)};
	const struct profile_mapping mapping = {.start = ADDRESS, .limit = 2 * ADDRESS, .filename = file};
	const struct profile_location location = {
	    .address = ADDRESS, .mapping = profile_add_mapping(p, &mapping), .lines = &line, .line_count = 1};
	char comment[64];

	profile_add_comment(p, "heaptap 0.1.0");
	snprintf(comment, sizeof(comment), "pid=%d comm=java host=box", pid);
	profile_add_comment(p, comment);
	profile_add_comment(p, "session=1700000000000000000-42 start=1700000001000000000");
	profile_set_time(p, time_ns, 0);
	assert_int_equal(profile_add_location(p, &location), 1);
	return p;
}

static struct late_names names;

static void learn(int pid, int64_t time_ns, const char *name, const char *file)
{
	struct profile *p = profile_with(pid, time_ns, name, file);

	assert_int_equal(code_names_learn(&names, p), 0);
	profile_free(p);
}

/* What a snapshot that has this name there gets; "" nothing. */
static const char *found(int pid, const char *name, const char *file)
{
	static char text[64];
	struct profile *p = profile_with(pid, 1, name, file);
	const char *late = code_names_of(&names, p, code_names_process(p), 1);

	snprintf(text, sizeof(text), "%s", late ? late : "");
	profile_free(p);
	return text;
}

static void the_newest_name_counts(void **state)
{
	(void)state;
	learn(7, 1, "[jit]", "[anon:jit]");
	assert_string_equal(found(7, "[jit]", "[anon:jit]"), "");
	learn(7, 3, "Svc.keep", "[anon:jit]");
	learn(7, 2, "Interpreter", "[anon:jit]");
	assert_string_equal(found(7, "[jit]", "[anon:jit]"), "Svc.keep");
	late_names_fini(&names);
}

static void only_code_without_a_name_gets_one(void **state)
{
	(void)state;
	learn(7, 3, "Svc.keep", "[anon:jit]");
	assert_string_equal(found(7, "Svc.other", "[anon:jit]"), "");
	assert_string_equal(found(8, "[jit]", "[anon:jit]"), "");
	assert_string_equal(found(7, "[jit]", "/usr/lib/libc.so.6"), "");
	late_names_fini(&names);
	learn(7, 3, "malloc", "/usr/lib/libc.so.6");
	assert_string_equal(found(7, "[jit]", "[anon:jit]"), "");
	late_names_fini(&names);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(the_newest_name_counts),
	    cmocka_unit_test(only_code_without_a_name_gets_one),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
