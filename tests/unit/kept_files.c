/* SPDX-License-Identifier: Apache-2.0 */
#include "sampler/write/snapshot_series.h"

#include "sampler/write/sink.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

/* Names are paths. */
static const struct sink sink = {NULL, NULL};

static bool exists(const char *path)
{
	return access(path, F_OK) == 0;
}

static void touch(const char *path)
{
	FILE *file = fopen(path, "w");

	assert_non_null(file);
	fclose(file);
}

static void the_newest_are_kept(void **state)
{
	char folder[] = "/tmp/heaptap-kept.XXXXXX", path[64], delta[64];
	struct kept_files files = {0};

	(void)state;
	assert_non_null(mkdtemp(folder));
	for (int i = 1; i <= 9; i++) {
		snprintf(path, sizeof(path), "%s/%d", folder, i);
		snprintf(delta, sizeof(delta), "%s/%d-delta", folder, i);
		touch(path);
		touch(delta);
		const char *const paths[] = {path, i % 2 ? delta : NULL};
		kept_files_add(&files, paths, 2, false, 3, &sink);
	}
	for (int i = 1; i <= 9; i++) {
		snprintf(path, sizeof(path), "%s/%d", folder, i);
		snprintf(delta, sizeof(delta), "%s/%d-delta", folder, i);
		assert_int_equal(exists(path), i > 6);
		/* what is not ours stays */
		assert_int_equal(exists(delta), i > 6 || i % 2 == 0);
		unlink(path);
		unlink(delta);
	}
	assert_int_equal(rmdir(folder), 0);
	kept_files_fini(&files);
}

/* Of some events there are files only from a later snapshot on. */
static void snapshots_are_kept_not_files(void **state)
{
	char folder[] = "/tmp/heaptap-kept.XXXXXX", path[64], names[3][64];
	const char *const paths[] = {names[0], names[1], names[2]};
	struct kept_files files = {0};

	(void)state;
	assert_non_null(mkdtemp(folder));
	for (int i = 1; i <= 6; i++) {
		for (int file = 0; file < 3; file++) {
			snprintf(names[file], sizeof(names[file]), "%s/%d-%d", folder, i, file);
			if (file == 0 || i >= 4)
				touch(names[file]);
		}
		kept_files_add(&files, paths, 3, false, 2, &sink);
		for (int old = 1; old <= i; old++) {
			snprintf(path, sizeof(path), "%s/%d-%d", folder, old, old < 4 ? 0 : 2);
			assert_int_equal(exists(path), old > i - 2);
		}
	}
	for (int i = 5; i <= 6; i++)
		for (int file = 0; file < 3; file++) {
			snprintf(path, sizeof(path), "%s/%d-%d", folder, i, file);
			unlink(path);
		}
	assert_int_equal(rmdir(folder), 0);
	kept_files_fini(&files);
}

/* Those by thresholds are few and matter, those of the clock are many. */
static void each_kind_is_kept_for_itself(void **state)
{
	char folder[] = "/tmp/heaptap-kept.XXXXXX", path[64];
	struct kept_files files = {0};

	(void)state;
	assert_non_null(mkdtemp(folder));
	for (int i = 1; i <= 12; i++) {
		const char *const paths[] = {path};

		snprintf(path, sizeof(path), "%s/%d", folder, i);
		touch(path);
		kept_files_add(&files, paths, 1, i % 4 == 0, 2, &sink);
	}
	for (int i = 1; i <= 12; i++) {
		snprintf(path, sizeof(path), "%s/%d", folder, i);
		assert_int_equal(exists(path), i == 8 || i >= 10);
		unlink(path);
	}
	assert_int_equal(rmdir(folder), 0);
	kept_files_fini(&files);
}

/* They are all that there is. */
static void what_was_not_written_pushes_out_nothing(void **state)
{
	char folder[] = "/tmp/heaptap-kept.XXXXXX", path[64], missing[64];
	const char *const there[] = {path}, *const none[] = {missing, NULL};
	struct kept_files files = {0};

	(void)state;
	assert_non_null(mkdtemp(folder));
	snprintf(path, sizeof(path), "%s/1", folder);
	snprintf(missing, sizeof(missing), "%s/2", folder);
	touch(path);
	kept_files_add(&files, there, 1, false, 1, &sink);
	kept_files_add(&files, none, 2, false, 1, &sink);
	assert_true(exists(path));
	assert_int_equal(files.count, 1);
	unlink(path);
	assert_int_equal(rmdir(folder), 0);
	kept_files_fini(&files);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(the_newest_are_kept),
	    cmocka_unit_test(snapshots_are_kept_not_files),
	    cmocka_unit_test(each_kind_is_kept_for_itself),
	    cmocka_unit_test(what_was_not_written_pushes_out_nothing),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
