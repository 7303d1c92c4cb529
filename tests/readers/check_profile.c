/* SPDX-License-Identifier: Apache-2.0 */
/*
 * check_profile [--foreign|--strict] FILE...
 *
 * Prints what pprof/check/check.h finds, one line each, and a line with the count per file. Exit status 1 if
 * there was an error, 2 if a file could not be read. Without an option files are held to be heap snapshots of
 * ours.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "pprof/check/check.h"
#include "pprof/codec/file.h"

enum { STATUS_OK, STATUS_ERRORS, STATUS_UNREADABLE };

#define LARGEST_FILE_BYTES ((size_t)1 << 30)

static int check_file(const char *path, enum check_level level)
{
	struct check_report report;
	uint8_t *data;
	size_t len, i;
	int err = file_read(path, LARGEST_FILE_BYTES, &data, &len);

	if (err) {
		fprintf(stderr, "%s: %s\n", path, strerror(-err));
		return STATUS_UNREADABLE;
	}
	err = check_profile(data, len, level, CHECK_MAX_BYTES, &report);
	free(data);
	for (i = 0; i < report.finding_count; i++)
		printf("%s: %s: %s\n", path, report.findings[i].severity == CHECK_ERROR ? "error" : "warning",
		    report.findings[i].message);
	printf("%s: %zu errors, %zu warnings\n", path, report.error_count, report.warning_count);
	if (err)
		fprintf(stderr, "%s: check not finished: %s\n", path, strerror(-err));
	else if (report.error_count)
		err = STATUS_ERRORS;
	check_report_fini(&report);
	return err < 0 ? STATUS_UNREADABLE : err;
}

int main(int argc, char **argv)
{
	enum check_level level = CHECK_HEAP;
	int i = 1, status = STATUS_OK;

	if (i < argc && !strcmp(argv[i], "--foreign")) {
		level = CHECK_FOREIGN;
		i++;
	} else if (i < argc && !strcmp(argv[i], "--strict")) {
		level = CHECK_STRICT;
		i++;
	}
	if (i == argc || !strncmp(argv[i], "--", 2)) {
		fprintf(stderr, "usage: %s [--foreign|--strict] FILE...\n", argv[0]);
		return STATUS_UNREADABLE;
	}
	for (; i < argc; i++) {
		int one = check_file(argv[i], level);

		if (one > status)
			status = one;
	}
	return status;
}
