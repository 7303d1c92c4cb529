/* SPDX-License-Identifier: Apache-2.0 */
#include "sampler/snapshot/standing_file.h"

#include "pprof/text/log_line.h"
#include "sampler/linux/clock.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* `days` is 1 at least. */
static const uint64_t old_ns = 12 * 3600 * UINT64_C(1000000000);

char *standing_file_beside(const struct scheduler *scheduler, const struct target *target, const char *name)
{
	char path[PATH_MAX];
	int error = scheduler_claim(scheduler, target, name, path, sizeof(path));

	if (error && !target->series->extra_error)
		log_line_of(target_user(target), "no file %s of pid %d: %s", name, (int)target->pid,
		    strerror(-error));
	target->series->extra_error = error;
	return error ? NULL : strdup(path);
}

/* "a/heaptap.x.1.timeline.pb.gz" -> "a/heaptap.x.1.timeline.jsonl" */
static char *as_jsonl(char *plain)
{
	static const char profile[] = ".pb.gz", lines[] = ".jsonl";
	size_t length = plain ? strlen(plain) : 0, suffix = sizeof(profile) - 1;
	char *path;

	if (length > strlen(lines) && strcmp(plain + length - strlen(lines), lines) == 0)
		return plain; /* a store names it so */
	if (length > suffix && strcmp(plain + length - suffix, profile) == 0)
		length -= suffix;
	if (!plain || asprintf(&path, "%.*s%s", (int)length, plain, lines) < 0)
		path = NULL;
	free(plain);
	return path;
}

bool standing_file_is_old(const struct scheduler *scheduler, const struct snapshot_series_standing *file)
{
	return file->path && scheduler_setup(scheduler)->claim && clock_now_ns() - file->claimed_ns >= old_ns;
}

static char *path_of(const struct scheduler *scheduler, const struct target *target, const char *name,
    struct snapshot_series_standing *file, bool jsonl)
{
	if (!file->path || standing_file_is_old(scheduler, file)) {
		char *path = standing_file_beside(scheduler, target, name);

		path = jsonl ? as_jsonl(path) : path;
		if (path) { /* else the old one will do */
			free(file->path);
			*file = (struct snapshot_series_standing){path, clock_now_ns()};
		}
	}
	return file->path ? strdup(file->path) : NULL;
}

char *standing_file_path(const struct scheduler *scheduler, const struct target *target, const char *name,
    struct snapshot_series_standing *file)
{
	return path_of(scheduler, target, name, file, false);
}

char *standing_file_jsonl(const struct scheduler *scheduler, const struct target *target, const char *name,
    struct snapshot_series_standing *file)
{
	return path_of(scheduler, target, name, file, true);
}
