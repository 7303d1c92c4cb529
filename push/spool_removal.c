/* SPDX-License-Identifier: Apache-2.0 */
/* The part of a spool that removes what is of no use any more. */
#include "push/spool.h"

#include "pprof/codec/file.h"
#include "pprof/codec/folder.h"
#include "pprof/text/clock.h"
#include "pprof/text/log_line.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

enum { HALF_WRITTEN_S = 60 };

/* Removes the names of a folder in the spool that `is_ours` knows. */
static void remove_in(
    const struct spool *spool, const char *name, bool (*is_ours)(int folder_fd, const char *name))
{
	DIR *folder = folder_list(spool->folder_fd, name);
	struct dirent *found;

	while (folder && (found = readdir(folder)))
		if (is_ours(dirfd(folder), found->d_name))
			unlinkat(dirfd(folder), found->d_name, 0);
	if (folder)
		closedir(folder);
}

static bool is_half_written(int folder_fd, const char *name)
{
	time_t before = (time_t)(clock_unix_ns() / 1000000000) - HALF_WRITTEN_S;
	struct stat st;

	return file_is_temporary(name) && !fstatat(folder_fd, name, &st, AT_SYMLINK_NOFOLLOW) &&
	    st.st_mtim.tv_sec < before;
}

void spool_tidy(const struct spool *spool)
{
	remove_in(spool, ".", is_half_written);
	remove_in(spool, SPOOL_STATE, is_half_written);
	remove_in(spool, SPOOL_REJECTED, is_half_written);
}

static bool is_ours(int folder_fd, const char *name)
{
	uint64_t process;

	return file_is_temporary(name) || spool_state_parse(name, &process) ||
	    strcmp(name, "counters") == 0 || strcmp(name, "lock") == 0;
}

void spool_remove(struct spool *spool)
{
	if (spool->lock_fd < 0 || flock(spool->folder_fd, LOCK_EX | LOCK_NB) || spool_scan(spool) ||
	    spool->count || (unlinkat(spool->folder_fd, SPOOL_REJECTED, AT_REMOVEDIR) && errno != ENOENT))
		return;
	remove_in(spool, SPOOL_STATE, is_ours);
	unlinkat(spool->folder_fd, SPOOL_STATE, AT_REMOVEDIR);
	remove_in(spool, ".", is_ours);
	/* By its path, which is ours all the way; it is removed only if it is empty. */
	if (rmdir(spool->path))
		log_line("cannot remove %s: %s", spool->path, strerror(errno));
}
