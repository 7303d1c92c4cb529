/* SPDX-License-Identifier: Apache-2.0 */
#include "sampler/snapshot/sink.h"

#include "pprof/codec/file.h"

static int publish(const struct sink *sink, const char *name, const void *data, size_t bytes)
{
	return file_publish(
	    name, data, bytes, 0600, FILE_MKDIR | (sink == &sink_files_synced ? FILE_FSYNC : 0));
}

const struct sink sink_files = {publish}, sink_files_synced = {publish};
