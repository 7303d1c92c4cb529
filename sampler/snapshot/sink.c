/* SPDX-License-Identifier: Apache-2.0 */
#include "sampler/snapshot/sink.h"

#include "pprof/codec/file.h"
#include "pprof/text/log_line.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

static int publish(const struct sink *sink, const char *name, const void *data, size_t bytes)
{
	return file_publish(
	    name, data, bytes, 0600, FILE_MKDIR | (sink == &sink_files_synced ? FILE_FSYNC : 0));
}

const struct sink sink_files = {publish}, sink_files_synced = {publish};

/* A name fits into PIPE_BUF, so it is written as a whole or not at all; waiting would hold up sampling. */
static int publish_announced(const struct sink *base, const char *name, const void *data, size_t bytes)
{
	const struct sink_announced *sink = (const struct sink_announced *)base;
	int error = sink->files->publish(sink->files, name, data, bytes);

	if (!error && write(sink->fd, name, strlen(name) + 1) < 0 && errno == EAGAIN)
		log_line("%s is not sent: heaptap-push is too slow", name);
	return error;
}

void sink_announced_init(struct sink_announced *sink, const struct sink *files, int fd)
{
	*sink = (struct sink_announced){{publish_announced}, files, fd};
}
