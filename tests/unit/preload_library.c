/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "sampler/inject/preload_library.h"

#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define ASAN "ASAN_OPTIONS=verify_asan_link_order=0"

static void check_environment(const char *const *before, const char *const *after)
{
	char **made = preload_library_environment((char *const *)before, "/x/libheaptap.so", "handle");
	size_t count = 0;

	assert_non_null(made);
	for (; after[count]; count++) {
		assert_non_null(made[count]);
		assert_string_equal(made[count], after[count]);
	}
	assert_null(made[count]);
	preload_library_environment_free(made);
}

static void the_library_comes_first(void **state)
{
	check_environment((const char *[]){"A=1", "B=2", NULL},
	    (const char *[]){"A=1", "B=2", "LD_PRELOAD=/x/libheaptap.so", "HEAPTAP=handle", ASAN, NULL});
	check_environment((const char *[]){NULL},
	    (const char *[]){"LD_PRELOAD=/x/libheaptap.so", "HEAPTAP=handle", ASAN, NULL});
	/* What is preloaded already stays, behind ours and in its place; empty is nothing. */
	check_environment((const char *[]){"A=1", "LD_PRELOAD=libjemalloc.so", "B=2", NULL},
	    (const char *[]){
	        "A=1", "LD_PRELOAD=/x/libheaptap.so:libjemalloc.so", "B=2", "HEAPTAP=handle", ASAN, NULL});
	check_environment((const char *[]){"LD_PRELOAD=", NULL},
	    (const char *[]){"LD_PRELOAD=/x/libheaptap.so", "HEAPTAP=handle", ASAN, NULL});
}

static void the_users_asan_options_stay(void **state)
{
	check_environment((const char *[]){"ASAN_OPTIONS=detect_leaks=0", NULL},
	    (const char *[]){"LD_PRELOAD=/x/libheaptap.so", "HEAPTAP=handle",
	        "ASAN_OPTIONS=detect_leaks=0:verify_asan_link_order=0", NULL});
}

static void another_sessions_handle_goes(void **state)
{
	check_environment((const char *[]){"HEAPTAP=old", "HEAPTAP_X=stays", "LD_PRELOAD_X=stays", NULL},
	    (const char *[]){"HEAPTAP_X=stays", "LD_PRELOAD_X=stays", "LD_PRELOAD=/x/libheaptap.so",
	        "HEAPTAP=handle", ASAN, NULL});
	preload_library_environment_free(NULL);
}

static void some_paths_cannot_be_named(void **state)
{
	assert_true(preload_library_is_preloadable("/usr/lib/heaptap/libheaptap.so"));
	assert_false(preload_library_is_preloadable("/my folder/libheaptap.so"));
	assert_false(preload_library_is_preloadable("/a:b/libheaptap.so"));
	assert_false(preload_library_is_preloadable("/$LIB/libheaptap.so"));
}

/* Beside this program, where the build puts none. */
static void it_is_found_beside_the_program(void **state)
{
	char self[PATH_MAX], wanted[PATH_MAX], found[PATH_MAX];
	ssize_t length = readlink("/proc/self/exe", self, sizeof(self) - 1);

	assert_true(length > 0);
	self[length] = '\0';
	assert_true(snprintf(wanted, sizeof(wanted), "%s/" PRELOAD_LIBRARY_NAME, dirname(self)) < PATH_MAX);
	int fd = open(wanted, O_CREAT | O_EXCL | O_WRONLY | O_CLOEXEC, 0644);
	assert_true(fd >= 0);
	close(fd);
	int error = preload_library_find(found, sizeof(found));
	char too_short[8];
	int short_error = preload_library_find(too_short, sizeof(too_short));
	unlink(wanted);
	assert_int_equal(error, 0);
	assert_string_equal(found, wanted);
	assert_true(short_error < 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(the_library_comes_first),
	    cmocka_unit_test(the_users_asan_options_stay),
	    cmocka_unit_test(another_sessions_handle_goes),
	    cmocka_unit_test(some_paths_cannot_be_named),
	    cmocka_unit_test(it_is_found_beside_the_program),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
