/* SPDX-License-Identifier: Apache-2.0 */
#include "sampler/cmd/daemon/off_switch.h"

#include <stdio.h>
#include <string.h>
#include <sys/inotify.h>
#include <sys/stat.h>
#include <unistd.h>

enum { LOOK_NS = 500 * 1000000 };

static void watch(struct off_switch *off)
{
	char folder[PATH_MAX];
	const char *slash = strrchr(off->path, '/');

	snprintf(
	    folder, sizeof(folder), "%.*s", slash ? (int)(slash - off->path) : 1, slash ? off->path : ".");
	off->fd = inotify_init1(IN_NONBLOCK | IN_CLOEXEC);
	if (off->fd >= 0 &&
	    inotify_add_watch(off->fd, folder[0] ? folder : "/",
	        IN_CREATE | IN_DELETE | IN_MOVED_TO | IN_MOVED_FROM | IN_ONLYDIR) < 0) {
		close(off->fd);
		off->fd = -1;
	}
}

static bool is_there(const struct off_switch *off)
{
	struct stat status;

	return lstat(off->path, &status) == 0;
}

void off_switch_open(struct off_switch *off, const char *path)
{
	*off = (struct off_switch){.fd = -1};
	snprintf(off->path, sizeof(off->path), "%s", path);
	watch(off);
	off->off = is_there(off);
}

void off_switch_close(struct off_switch *off)
{
	if (off->fd >= 0)
		close(off->fd);
	off->fd = -1;
}

/* A notice only means that it is time to look for the file. (The folder may have been replaced, and then
 * there are no notices: so we also look without one.) */
static bool has_notice(const struct off_switch *off)
{
	char notices[4096];
	bool any = false;

	while (off->fd >= 0 && read(off->fd, notices, sizeof(notices)) > 0)
		any = true;
	return any;
}

bool off_switch_look(struct off_switch *off, uint64_t now_ns)
{
	if (!has_notice(off) && now_ns - off->looked_ns < LOOK_NS)
		return false;
	off->looked_ns = now_ns;
	const bool before = off->off;
	off->off = is_there(off);
	return off->off != before;
}
