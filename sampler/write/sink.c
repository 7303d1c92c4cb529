/* SPDX-License-Identifier: Apache-2.0 */
#include "sampler/write/sink.h"

#include "pprof/codec/file.h"
#include "pprof/codec/folder.h"
#include "pprof/text/log_line.h"
#include "sampler/linux/memory_file.h"
#include "sampler/write/output.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static int publish(const struct sink *base, const char *name, const void *data, size_t bytes)
{
	const struct sink_files *sink = (const struct sink_files *)base;
	struct folder folder;
	const char *file;
	int error = output_open_folder(sink->output, name, FILE_MKDIR, &folder, &file);

	if (error)
		return error;
	error = file_publish_in(&folder, file, data, bytes, 0600, 0);
	folder_close(&folder);
	return error;
}

static int open_folder(const struct sink *base, const char *name, struct folder *folder, const char **file)
{
	return output_open_folder(((const struct sink_files *)base)->output, name, 0, folder, file);
}

void sink_files_init(struct sink_files *sink, const struct output *output)
{
	*sink = (struct sink_files){{publish, open_folder}, output};
}

static int open_folder_of(const struct sink *sink, const char *name, struct folder *folder, const char **file)
{
	return sink->open_folder ? sink->open_folder(sink, name, folder, file)
	                         : file_open_folder(name, NULL, 0, folder, file);
}

/* A device is no such file, so it is never removed. */
static bool is_file(const struct folder *folder, const char *file)
{
	struct stat status;

	return fstatat(folder->fd, file, &status, AT_SYMLINK_NOFOLLOW) == 0 && S_ISREG(status.st_mode);
}

bool sink_has_file(const struct sink *sink, const char *name)
{
	struct folder folder;
	const char *file;
	bool has;

	if (open_folder_of(sink, name, &folder, &file))
		return false;
	has = is_file(&folder, file);
	folder_close(&folder);
	return has;
}

void sink_remove_file(const struct sink *sink, const char *name)
{
	struct folder folder;
	const char *file;

	if (open_folder_of(sink, name, &folder, &file))
		return;
	if (is_file(&folder, file))
		unlinkat(folder.fd, file, 0);
	folder_close(&folder);
}

/* A name fits into PIPE_BUF, so it is written as a whole or not at all. The pipe does not block: that would
 * hold up sampling. */
static int publish_announced(const struct sink *base, const char *name, const void *data, size_t bytes)
{
	const struct sink_announced *sink = (const struct sink_announced *)base;
	int error = sink->files->publish(sink->files, name, data, bytes);

	if (!error && write(sink->fd, name, strlen(name) + 1) < 0)
		log_line(
		    "%s is not sent: heaptap-push %s", name, errno == EAGAIN ? "is too slow" : "has ended");
	return error;
}

static int open_announced(const struct sink *base, const char *name, struct folder *folder, const char **file)
{
	return open_folder_of(((const struct sink_announced *)base)->files, name, folder, file);
}

void sink_announced_init(struct sink_announced *sink, const struct sink *files, int fd)
{
	*sink = (struct sink_announced){{publish_announced, open_announced}, files, fd};
}

/* If a child was killed while it wrote, another one writes all again. */
static int publish_memory(const struct sink *base, const char *name, const void *data, size_t bytes)
{
	const struct sink_memory *sink = (const struct sink_memory *)base;
	const char *at = data;
	size_t done = 0;

	if (ftruncate(sink->fd, 0))
		return -errno;
	while (done < bytes) {
		ssize_t wrote = pwrite(sink->fd, at + done, bytes - done, (off_t)done);

		if (wrote < 0 && errno != EINTR)
			return -errno;
		done += wrote > 0 ? (size_t)wrote : 0;
	}
	return 0;
}

int sink_memory_open(struct sink_memory *sink)
{
	*sink = (struct sink_memory){{publish_memory, NULL}, memory_file_create("heaptap-profile")};
	return sink->fd < 0 ? sink->fd : 0;
}

int sink_memory_seal(const struct sink_memory *sink)
{
	return fcntl(sink->fd, F_ADD_SEALS, F_SEAL_SEAL | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE) ? -errno
	                                                                                              : 0;
}

void sink_memory_close(struct sink_memory *sink)
{
	if (sink->fd >= 0)
		close(sink->fd);
	sink->fd = -1;
}
