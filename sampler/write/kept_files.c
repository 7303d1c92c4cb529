/* SPDX-License-Identifier: Apache-2.0 */
#include "sampler/write/kept_files.h"

#include "pprof/table/array.h"
#include "sampler/write/sink.h"

#include <stdlib.h>
#include <string.h>

static void free_paths(struct kept_snapshot *snapshot)
{
	while (snapshot->path_count)
		free(snapshot->paths[--snapshot->path_count]);
}

void kept_files_fini(struct kept_files *files)
{
	while (files->count)
		free_paths(&files->snapshots[--files->count]);
	free(files->snapshots);
	*files = (struct kept_files){0};
}

/* There must be one. */
static void remove_oldest(struct kept_files *files, bool by_threshold, const struct sink *sink)
{
	struct kept_snapshot *oldest = files->snapshots;

	while (oldest->by_threshold != by_threshold)
		oldest++;
	for (size_t i = 0; i < oldest->path_count; i++)
		sink_remove_file(sink, oldest->paths[i]);
	free_paths(oldest);
	files->count--;
	memmove(oldest, oldest + 1, (size_t)(files->snapshots + files->count - oldest) * sizeof(*oldest));
}

void kept_files_add(struct kept_files *files, const char *const *paths, size_t path_count, bool by_threshold,
    size_t keep, const struct sink *sink)
{
	struct kept_snapshot snapshot = {.by_threshold = by_threshold};
	size_t alike = 0;

	if (!keep ||
	    array_reserve(&files->snapshots, &files->capacity, files->count + 1, sizeof(*files->snapshots)) !=
	        0)
		return;
	for (size_t i = 0; i < path_count && i < SNAPSHOT_FILES; i++) {
		char *path = paths[i] && sink_has_file(sink, paths[i]) ? strdup(paths[i]) : NULL;

		if (path)
			snapshot.paths[snapshot.path_count++] = path;
	}
	if (!snapshot.path_count)
		return;
	files->snapshots[files->count++] = snapshot;
	for (size_t i = 0; i < files->count; i++)
		alike += files->snapshots[i].by_threshold == by_threshold;
	for (; alike > keep; alike--)
		remove_oldest(files, by_threshold, sink);
}
