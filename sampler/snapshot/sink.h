/* SPDX-License-Identifier: Apache-2.0 */
/* Where a finished profile goes: to a file, or to another kind of sink. */
#ifndef SAMPLER_SNAPSHOT_SINK_H
#define SAMPLER_SNAPSHOT_SINK_H

#include <stdbool.h>
#include <stddef.h>

struct folder;
struct output;

struct sink {
	/* Called in the writer's child, with all of the bytes at once. Returns 0 or -errno. */
	int (*publish)(const struct sink *sink, const char *name, const void *data, size_t bytes);
	/* Opens the folder of a file that it has published, as file_open_folder(). NULL: names are paths. */
	int (*open_folder)(
	    const struct sink *sink, const char *name, struct folder *folder, const char **file);
};

/* A file of that name, mode 0600, with the folders that it needs; it appears as a whole or not at all. */
struct sink_files {
	struct sink base;
	const struct output *output; /* borrowed; it made the names */
};

void sink_files_init(struct sink_files *sink, const struct output *output);

/* Is the file there? And removes it; if it was moved away, it stays where it is now. */
bool sink_has_file(const struct sink *sink, const char *name);
void sink_remove_file(const struct sink *sink, const char *name);

/* The same, and then writes the name, with its NUL, into a pipe that does not block: for `record --push`. */
struct sink_announced {
	struct sink base;
	const struct sink *files; /* borrowed */
	int fd;
};

/* Shared memory, for who asked for the profile and wants no file: made here, written by the writer's child,
 * sealed when that is done. */
struct sink_memory {
	struct sink base;
	int fd;
};

int sink_memory_open(struct sink_memory *sink);       /* 0 or -errno */
int sink_memory_seal(const struct sink_memory *sink); /* nobody can change it any more; 0 or -errno */
void sink_memory_close(struct sink_memory *sink);

void sink_announced_init(struct sink_announced *sink, const struct sink *files, int fd);

#endif
