/* SPDX-License-Identifier: Apache-2.0 */
/* Which files may everybody read? */
#include "sampler/linux/regular_file.h"

#include "tests/unit/workshop.h"

#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <unistd.h>

#include <cmocka.h>

static bool is_public(const struct workshop *shop, const char *name, const char *then)
{
	struct stat status;
	const int fd = regular_file_open(AT_FDCWD, workshop_path(shop, name), 0, &status);

	assert_true(fd >= 0);
	assert_int_equal(workshop_run(shop, "%s", then), 0);
	const bool answer = regular_file_is_public(fd, &status);
	close(fd);
	return answer;
}

static void the_folders_above_count(void **state)
{
	struct workshop *shop = *state;

	assert_int_equal(
	    workshop_run(shop,
	        "chmod 711 . && mkdir -p open/closed/inner && "
	        "for folder in open open/closed open/closed/inner; do echo >$folder/file; done && "
	        "echo >secret && ln -s open/closed/inner/file link && "
	        "chmod -R a+rX open && chmod 750 open/closed && chmod 640 secret"),
	    0);
	assert_true(is_public(shop, "open/file", "true"));
	assert_false(is_public(shop, "secret", "true"));
	assert_false(is_public(shop, "open/closed/file", "true"));
	assert_false(is_public(shop, "open/closed/inner/file", "true"));
	assert_false(is_public(shop, "link", "true"));
	/* what is at the path now is another file */
	assert_false(is_public(shop, "open/file", "rm open/file && echo >open/file"));
	assert_false(is_public(shop, "open/file", "rm open/file && echo >'open/file (deleted)'"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test_setup_teardown(the_folders_above_count, workshop_open, workshop_close),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
