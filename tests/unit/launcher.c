/* SPDX-License-Identifier: Apache-2.0 */
/* Who starts servers with an environment of their own, and which file says what is in it. */
#include "sampler/cmd/enable/launcher.h"
#include "pprof/table/array.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

static void known_launchers(void **state)
{
	const struct launcher *launcher = launcher_of_program("/usr/bin/pg_ctlcluster");

	(void)state;
	assert_non_null(launcher);
	assert_ptr_equal(launcher_of_program("pg_ctlcluster"), launcher);
	assert_null(launcher_of_program("/usr/bin/my_pg_ctlcluster"));
	assert_null(launcher_of_program("/usr/bin/pg_ctlcluster/sub"));
	assert_null(launcher_of_program(""));
	assert_ptr_equal(launcher_of_server("postgres"), launcher);
	assert_null(launcher_of_server("perl"));
	assert_true(launcher_is_idle("/bin/true"));
	assert_true(launcher_is_idle("/usr/bin/true"));
	assert_false(launcher_is_idle("/bin/false"));
	assert_false(launcher_is_idle(""));
}

static void instances(void **state)
{
	static const struct {
		const char *unit, *part; /* NULL: not known */
	} rows[] = {
	    {"postgresql@15-main.service", "15/main"},
	    {"postgresql@9.6-main.service", "9.6/main"},
	    {"postgresql@15-my-own.db.service", "15/my-own.db"},
	    {"postgresql@15-my\\x2down.service", "15/my-own"},
	    {"any@1-x.service", "1/x"},
	    {"postgresql.service", NULL},
	    {"postgresql@.service", NULL},
	    {"postgresql@15.service", NULL},
	    {"postgresql@15-.service", NULL},
	    {"postgresql@-main.service", NULL},
	    {"postgresql@15\\x2dmain.service", NULL}, /* no '-' separates them */
	    {"postgresql@15-..service", NULL},
	    {"postgresql@15-a\\x2f..\\x2fb.service", NULL},
	    {"postgresql@..-main.service", NULL},
	    {"postgresql@15-a\\x1b[m.service", NULL},
	    {"postgresql@15-a\\x.service", NULL},
	    {"postgresql@15-a b.service", NULL},
	    {"a.b@15-main", NULL},
	    {"", NULL},
	};
	const struct launcher *launcher = launcher_of_server("postgres");
	(void)state;
	for (size_t i = 0; i < ARRAY_COUNT(rows); i++) {
		char file[LAUNCHER_FILE_BYTES], wanted[LAUNCHER_FILE_BYTES];

		snprintf(wanted, sizeof(wanted), "/etc/postgresql/%s/environment",
		    rows[i].part ? rows[i].part : "VERSION/CLUSTER");
		assert_int_equal(launcher_file(launcher, rows[i].unit, file), rows[i].part != NULL);
		assert_string_equal(file, wanted);
	}
}

static void too_long_a_name_is_not_known(void **state)
{
	char unit[1024] = "postgresql@15-", file[LAUNCHER_FILE_BYTES];
	const size_t before = strlen(unit);

	(void)state;
	for (size_t length = 180; length < 900; length++) {
		memset(unit + before, 'x', length);
		strcpy(unit + before + length, ".service");
		const bool known = launcher_file(launcher_of_server("postgres"), unit, file);
		assert_int_equal(known, length < 197);
	}
}

static void lines_of_the_file(void **state)
{
	static const struct {
		const char *text;
		bool has;
	} rows[] = {
	    {"", false},
	    {"LD_PRELOAD = '/lib/x.so'", true},
	    {"# note\n\n  LD_PRELOAD='/lib/x.so'\t# ours\nLANG = C\n", true},
	    {"LD_PRELOAD '/lib/x.so'\n", true},
	    {"LD_PRELOAD = '/lib/x.so:/lib/y.so'\n", true},
	    {"LD_PRELOAD = '/lib/x.so /lib/y.so'\n", true},
	    {"LD_PRELOAD = '/lib/y.so:/lib/x.so'\n", false},
	    {"LD_PRELOAD = '/lib/x.so.1'\n", false},
	    {"LD_PRELOAD = '/lib/x.s", false},
	    {"LD_PRELOAD = '/lib/x.so", false},
	    {"LD_PRELOAD = '\n/lib/x.so'", false},
	    {"#LD_PRELOAD = '/lib/x.so'\n", false},
	    {"LD_PRELOADS = '/lib/x.so'\n", false},
	    {"LD_PRELOAD = '/lib/x.so'\nLD_PRELOAD = '/lib/y.so'\n", false},
	    {"LD_PRELOAD = '/lib/y.so'\nLD_PRELOAD = '/lib/x.so'\n", true},
	};
	char line[LAUNCHER_LINE_BYTES];
	(void)state;
	for (size_t i = 0; i < ARRAY_COUNT(rows); i++)
		if (launcher_text_has(rows[i].text, "/lib/x.so") != rows[i].has)
			fail_msg("%s", rows[i].text);
	launcher_line("/lib/x.so", line);
	assert_string_equal(line, "LD_PRELOAD = '/lib/x.so'");
	assert_true(launcher_text_has(line, "/lib/x.so"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(known_launchers),
	    cmocka_unit_test(instances),
	    cmocka_unit_test(too_long_a_name_is_not_known),
	    cmocka_unit_test(lines_of_the_file),
	};

	return cmocka_run_group_tests_name("launcher", tests, NULL, NULL);
}
