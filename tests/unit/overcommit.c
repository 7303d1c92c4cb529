/* SPDX-License-Identifier: Apache-2.0 */
/* How the library reads /proc/sys/vm/overcommit_memory. */
#include "preload/overcommit.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

static bool is_strict(const char *text)
{
	char path[] = "/tmp/heaptap-overcommit.XXXXXX";
	int fd = mkstemp(path);

	assert_true(fd >= 0);
	assert_int_equal(strlen(text), write(fd, text, strlen(text)));
	close(fd);
	bool strict = overcommit_is_strict(path);
	unlink(path);
	return strict;
}

static void two_is_strict_and_nothing_else(void **unused)
{
	assert_true(is_strict("2\n"));
	assert_true(is_strict("2"));
	assert_false(is_strict("0\n"));
	assert_false(is_strict("1\n"));
	assert_false(is_strict("20\n"));
	assert_false(is_strict(""));
	assert_false(overcommit_is_strict("/nonexistent/overcommit_memory"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(two_is_strict_and_nothing_else),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
