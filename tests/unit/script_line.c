/* SPDX-License-Identifier: Apache-2.0 */
/* The first line of a script, as execve(2) and env(1) read it. */
#include "sampler/inject/script_line.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

static struct script_line line;

static bool parse(const char *text)
{
	return script_line_parse(text, strlen(text), &line);
}

static void interpreter_and_one_argument(void **state)
{
	static const char *const lines[][3] = {
	    {"#!/bin/sh\n", "/bin/sh", ""},
	    {"#!/bin/sh", "/bin/sh", ""},
	    {"#! \t/bin/sh -eu \t\necho\n", "/bin/sh", "-eu"},
	    {"#!/usr/bin/awk -v x=1 -f\n", "/usr/bin/awk", "-v x=1 -f"},
	    {"#!/bin/sh\r\n", "/bin/sh\r", ""},
	};
	static const char *const others[] = {"", "#", "#!", "#!\n", "#! \t\nx", " #!/bin/sh\n", "echo\n"};

	for (size_t i = 0; i < sizeof(lines) / sizeof(lines[0]); i++) {
		assert_true(parse(lines[i][0]));
		assert_string_equal(line.interpreter, lines[i][1]);
		assert_string_equal(line.argument, lines[i][2]);
	}
	for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++)
		assert_false(parse(others[i]));
}

/* The kernel reads no further than 256 bytes, and neither do we. */
static void a_long_line_is_cut(void **state)
{
	char head[400];

	memset(head, 'a', sizeof(head));
	memcpy(head, "#!/", 3);
	assert_true(script_line_parse(head, sizeof(head), &line));
	assert_int_equal(strlen(line.interpreter), SCRIPT_LINE_BYTES - 3);
	assert_string_equal(line.argument, "");
}

static void env_looks_its_program_up(void **state)
{
	static const char *const lines[][2] = {
	    {"#!/usr/bin/env python3\n", "python3"},
	    {"#!/usr/bin/env -S A=1 python3 -u\n", "python3"},
	    {"#!/usr/bin/env\n", ""},
	    {"#!/usr/bin/env -i\n", ""},
	    {"#!env sh", "sh"},
	};
	char program[SCRIPT_LINE_BYTES];

	for (size_t i = 0; i < sizeof(lines) / sizeof(lines[0]); i++) {
		assert_true(parse(lines[i][0]));
		assert_true(script_line_env(&line, program));
		assert_string_equal(program, lines[i][1]);
	}
	assert_true(parse("#!/usr/bin/environ python3\n"));
	assert_false(script_line_env(&line, program));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(interpreter_and_one_argument),
	    cmocka_unit_test(a_long_line_is_cut),
	    cmocka_unit_test(env_looks_its_program_up),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
