/* SPDX-License-Identifier: Apache-2.0 */
/* Where a finished profile goes: to a file, or to another kind of sink. */
#ifndef SAMPLER_WRITE_SINK_H
#define SAMPLER_WRITE_SINK_H

#include "pprof/codec/file.h"

#include <stdbool.h>
#include <stddef.h>

struct folder;
struct output;

/* Writes a file of that name, mode 0600, and makes its folders. The file appears as a whole or not at all. */
struct sink_files {
	struct sink base;
	const struct output *output; /* borrowed; it made the names */
};

void sink_files_init(struct sink_files *sink, const struct output *output);

/* Is the file there? The second removes it. A file that was moved away stays. */
bool sink_has_file(const struct sink *sink, const char *name);
void sink_remove_file(const struct sink *sink, const char *name);

/* Writes files, and tells a pipe that does not block each file's name, with its NUL: for `record --push`. */
struct sink_announced {
	struct sink base;
	const struct sink *files; /* borrowed */
	int fd;
};

/* Shared memory, for a client that wants no file. The sampler makes it, the writer's child writes it, and
 * then the sampler seals it. */
struct sink_memory {
	struct sink base;
	int fd;
};

int sink_memory_open(struct sink_memory *sink);       /* 0 or -errno */
int sink_memory_seal(const struct sink_memory *sink); /* nobody can change it any more. 0 or -errno */
void sink_memory_close(struct sink_memory *sink);

void sink_announced_init(struct sink_announced *sink, const struct sink *files, int fd);

#endif
