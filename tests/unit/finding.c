/* SPDX-License-Identifier: Apache-2.0 */
/* What is printed of a name that an enemy has chosen: doctor's findings, lines on stderr, columns of a
 * report. */
#include "sampler/cmd/doctor/finding.h"
#include "pprof/text/log_line.h"
#include "sampler/linux/screen.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

/* ESC, a C1 control sequence introducer, text that is shown from the right, a newline. */
#define HOSTILE             \
	"a\033[2Jb\xc2\x9b" \
	"c\xe2\x80\xae"     \
	"d\xe2\x81\xa6"     \
	"e\nf\xc3\xbc"

static void findings_are_lines_and_remember_the_worst(void **state)
{
	char *text;
	size_t bytes;
	struct findings findings = {.out = open_memstream(&text, &bytes)};

	finding_say(&findings, FINDING_GOOD, NULL, "kernel %d", 6);
	finding_say(&findings, FINDING_NOTE, "do this", "half of it");
	assert_false(findings.bad);
	finding_say(&findings, FINDING_BAD, NULL, "nothing of it");
	finding_say(&findings, FINDING_GOOD, NULL, "fine");
	assert_true(findings.bad);
	fclose(findings.out);
	assert_string_equal(text,
	    "ok    kernel 6\n"
	    "note  half of it\n"
	    "      fix: do this\n"
	    "bad   nothing of it\n"
	    "ok    fine\n");
	free(text);
}

static void findings_do_not_move_the_cursor(void **state)
{
	char *text;
	size_t bytes;
	struct findings findings = {.out = open_memstream(&text, &bytes)};

	finding_say(&findings, FINDING_NOTE, NULL, "%s", HOSTILE);
	fclose(findings.out);
	assert_string_equal(text, "note  a?[2Jb??c???d???e?f\xc3\xbc\n");
	free(text);
}

static void lines_on_stderr_do_not_move_the_cursor(void **state)
{
	int pipes[2], saved = dup(STDERR_FILENO);
	char line[LOG_LINE_BYTES + 1] = "";

	assert_int_equal(pipe(pipes), 0);
	dup2(pipes[1], STDERR_FILENO);
	log_line("%s \xff", HOSTILE);
	dup2(saved, STDERR_FILENO);
	close(saved);
	close(pipes[1]);
	assert_true(read(pipes[0], line, sizeof(line) - 1) > 0);
	close(pipes[0]);
	assert_string_equal(line, "heaptap: a?[2Jb??c???d???e?f\xc3\xbc ?\n");
}

static void columns_do_not_move_the_cursor(void **state)
{
	char *text;
	size_t bytes;
	struct screen screen = {.out = open_memstream(&text, &bytes)};

	assert_int_equal(screen_text(&screen, HOSTILE, 0), 15);
	assert_int_equal(screen_text(&screen,
	                     "a\xc2\x9b"
	                     "bcdefgh\xe2\x80\xaezz",
	                     8),
	    8);
	fclose(screen.out);
	assert_string_equal(text,
	    "a?[2Jb?c?d?e?f\xc3\xbc"
	    "a?b..?zz");
	free(text);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(findings_are_lines_and_remember_the_worst),
	    cmocka_unit_test(findings_do_not_move_the_cursor),
	    cmocka_unit_test(lines_on_stderr_do_not_move_the_cursor),
	    cmocka_unit_test(columns_do_not_move_the_cursor),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
