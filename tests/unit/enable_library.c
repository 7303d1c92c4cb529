/* SPDX-License-Identifier: Apache-2.0 */
/* Who could replace the library that units are made to load. */
#include "sampler/cmd/enable/enable_library.h"
#include "pprof/table/array.h"

#include "tests/unit/workshop.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

/* `good` and `theirs` have the same file, which is root's; `theirs` belongs to another user. */
static void each_folder_and_link_counts(void **state)
{
	struct workshop *shop = *state;
	static const struct {
		const char *path, *wrong; /* wrong: what is named; NULL: it is safe */
	} rows[] = {
	    {"good/lib.so", NULL},
	    {"theirs/lib.so", "theirs"},
	    {"good/by_link/lib.so", NULL}, /* a link of root's, to a folder of root's */
	    {"good/../good/./lib.so", NULL},
	    {"good/to_theirs", "theirs"}, /* the file is root's, and its folder is not */
	    {"good/to_link", "theirs"},   /* a link to a link in their folder, which leads back */
	    {"good/theirs_link", "good/theirs_link"},
	    {"good/open", "good/open"},
	    {"good/group", "good/group"},
	    {"good/others", "good/others"},
	    {"open/lib.so", "open"},
	    {"sticky/lib.so", NULL},
	    {"good/relative", NULL},
	};
	char reason[PATH_MAX * 3], wanted[512];

	if (geteuid() != 0)
		skip();
	assert_int_equal(workshop_run(shop,
	                     "chmod 755 . && mkdir good theirs open sticky && "
	                     "for folder in good theirs open sticky; do echo >$folder/lib.so; done && "
	                     "ln -s $PWD/good good/by_link && ln -s $PWD/theirs/lib.so good/to_theirs && "
	                     "ln -s $PWD/theirs/back good/to_link && ln -s $PWD/good/lib.so theirs/back && "
	                     "ln -s lib.so good/theirs_link && chown -h 1234 good/theirs_link && "
	                     "ln -s ../good/lib.so good/relative && "
	                     "for file in open group others; do echo >good/$file; done && "
	                     "chmod 666 good/open && chmod 664 good/group && chmod 646 good/others && "
	                     "chmod 777 open && "
	                     "chmod 1777 sticky && chown 1234 theirs"),
	    0);
	for (size_t i = 0; i < ARRAY_COUNT(rows); i++) {
		const char *path = workshop_path(shop, rows[i].path);
		const int error = enable_library_check(path, reason, sizeof(reason));

		assert_int_equal(error != 0, rows[i].wrong != NULL);
		if (!rows[i].wrong)
			continue;
		snprintf(
		    wanted, sizeof(wanted), "%s belongs to another user", workshop_path(shop, rows[i].wrong));
		assert_int_equal(strncmp(reason, wanted, strlen(wanted)), 0);
	}
}

static void a_way_without_end(void **state)
{
	struct workshop *shop = *state;
	char reason[PATH_MAX * 3];

	if (geteuid() != 0)
		skip();
	assert_int_equal(workshop_run(shop, "ln -s $PWD/two one && ln -s $PWD/one two"), 0);
	assert_int_not_equal(
	    enable_library_check(workshop_path(shop, "one/lib.so"), reason, sizeof(reason)), 0);
	assert_int_not_equal(
	    enable_library_check(workshop_path(shop, "missing/lib.so"), reason, sizeof(reason)), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test_setup_teardown(each_folder_and_link_counts, workshop_open, workshop_close),
	    cmocka_unit_test_setup_teardown(a_way_without_end, workshop_open, workshop_close),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
