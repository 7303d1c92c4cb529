/* SPDX-License-Identifier: Apache-2.0 */
/* Where a finished profile goes: an interface. sampler/write/sink.h has sinks into files, pipes and shared
 * memory; the daemon's store is another. */
#ifndef PPROF_CODEC_SINK_H
#define PPROF_CODEC_SINK_H

#include <stddef.h>

struct folder;

struct sink {
	/* The writer's child calls it, with all of the bytes at once. Returns 0 or -errno. */
	int (*publish)(const struct sink *sink, const char *name, const void *data, size_t bytes);
	/* Opens the folder of a file that it has published, as file_open_folder() does. NULL: names are
	 * paths. */
	int (*open_folder)(
	    const struct sink *sink, const char *name, struct folder *folder, const char **file);
};

#endif
