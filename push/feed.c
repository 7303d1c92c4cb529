/* SPDX-License-Identifier: Apache-2.0 */
#include "push/feed.h"

#include "pprof/codec/decode.h"
#include "pprof/codec/file.h"
#include "pprof/profile/origin.h"
#include "pprof/profile/profile.h"
#include "pprof/text/log_line.h"
#include "push/instant.h"
#include "push/lane.h"
#include "push/verbosity.h"
#include "push/version_set.h"
#include "push/watch.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define SCAN_NS      (UINT64_C(60) * 1000000000)
#define SCAN_SOON_NS (UINT64_C(10) * 1000000000) /* after a full disk, or without inotify */

enum { FILE_MAX_BYTES = 1 << 30, PATHS_BYTES = 2 * PATH_MAX };

struct feed {
	struct watch *watch; /* NULL: no folders */
	int paths_fd;        /* -1: none, or at its end */
	bool has_paths;
	char paths[PATHS_BYTES]; /* what was read of a path that is not whole yet */
	size_t paths_bytes;
	struct version_set seen, found; /* files that need not be read again; those of the scan under way */
	uint64_t scan_ns;               /* instant_now_ns() of the next */
	bool behind; /* a file could not be spooled: only a scan may go on, from that one */
};

struct feed *feed_new(char *const *folders, int paths_fd)
{
	struct feed *feed = calloc(1, sizeof(*feed));
	size_t count = 0;

	if (!feed)
		return NULL;
	while (folders[count])
		count++;
	feed->paths_fd = paths_fd;
	feed->has_paths = paths_fd >= 0;
	if (feed->has_paths)
		fcntl(paths_fd, F_SETFL, O_NONBLOCK);
	if (!feed->has_paths)
		feed->watch = watch_new(folders, count);
	if (feed->has_paths || feed->watch)
		return feed;
	free(feed);
	return NULL;
}

void feed_free(struct feed *feed)
{
	if (!feed)
		return;
	watch_free(feed->watch);
	version_set_fini(&feed->seen);
	if (feed->paths_fd >= 0)
		close(feed->paths_fd);
	free(feed);
}

size_t feed_fds(const struct feed *feed, struct pollfd fds[FEED_FDS_MAX])
{
	int fd = feed->watch ? watch_fd(feed->watch) : feed->paths_fd;

	fds[0] = (struct pollfd){.fd = fd, .events = POLLIN};
	return fd >= 0;
}

uint64_t feed_due_ns(const struct feed *feed)
{
	uint64_t now = instant_now_ns();

	if (!feed->watch)
		return UINT64_MAX;
	return feed->scan_ns > now ? feed->scan_ns - now : 0;
}

bool feed_has_ended(const struct feed *feed)
{
	return feed->has_paths && feed->paths_fd < 0;
}

/* ---- one file */

/* 0: it need not be looked at again. -errno: it must be, since a spool has not taken it. */
static int offer(const char *path, struct lane *lanes, size_t lane_count)
{
	struct profile *profile;
	struct origin origin;
	uint8_t *bytes;
	size_t length;
	int err = file_read(path, FILE_MAX_BYTES, &bytes, &length);

	if (err) {
		if (err != -ENOENT)
			log_line("cannot read %s: %s", path, strerror(-err));
		return err == -ENOMEM ? err : 0;
	}
	if (decode_profile(bytes, length, DECODE_MAX_BYTES, &profile)) {
		if (verbosity > 0)
			log_line("%s is no profile", path);
		free(bytes);
		return 0;
	}
	origin_read(&origin, profile);
	profile_free(profile);
	for (size_t i = 0; i < lane_count; i++) {
		int one = lane_offer(&lanes[i], &origin, bytes, length);

		err = one ? one : err;
	}
	free(bytes);
	return err;
}

/* Time lines and lifetimes lie beside the profiles. */
static bool is_other_kind(const char *path)
{
	size_t length = strlen(path);

	return length > 6 && strcmp(path + length - 6, ".jsonl") == 0;
}

/* Is it older than any target takes? By when it was written, so that it need not be read. */
static bool is_too_old(const struct watch_file *file, const struct lane *lanes, size_t lane_count)
{
	int64_t now = instant_unix_ns();

	for (size_t i = 0; i < lane_count; i++) {
		uint64_t past_ns = target_limits(lanes[i].target)->past_ns;

		if (!past_ns || file->written_ns > now - (int64_t)past_ns)
			return false;
	}
	return true;
}

/* ---- folders */

/* Files in their order. After one that could not be spooled none is tried: a later one of the same
 * process would count as newer. */
static int offer_files(struct feed *feed, struct version_set *set, const struct watch_file *files,
    size_t count, struct lane *lanes, size_t lane_count)
{
	int err = 0;

	for (size_t i = 0; i < count && !err; i++) {
		if (!version_set_has(&feed->seen, files[i].version) && !is_other_kind(files[i].path) &&
		    !is_too_old(&files[i], lanes, lane_count))
			err = offer(files[i].path, lanes, lane_count);
		if (!err)
			version_set_add(set, files[i].version);
	}
	return err;
}

/* What is not there any more is forgotten on the way. */
static void scan(struct feed *feed, struct lane *lanes, size_t lane_count)
{
	struct watch_file *files;
	size_t count;
	int err = watch_scan(feed->watch, &files, &count);

	if (!err) {
		err = offer_files(feed, &feed->found, files, count, lanes, lane_count);
		watch_files_free(files, count);
	}
	if (!err) {
		version_set_fini(&feed->seen);
		feed->seen = feed->found;
		feed->found = (struct version_set){0};
	}
	version_set_fini(&feed->found);
	feed->behind = err != 0;
	feed->scan_ns = instant_now_ns() + (err || watch_fd(feed->watch) < 0 ? SCAN_SOON_NS : SCAN_NS);
}

static void read_events(struct feed *feed, struct lane *lanes, size_t lane_count)
{
	struct watch_file *files;
	size_t count;
	int err = watch_read(feed->watch, &files, &count);

	if (err) {
		feed->scan_ns = 0;
		return;
	}
	if (!feed->behind)
		err = offer_files(feed, &feed->seen, files, count, lanes, lane_count);
	watch_files_free(files, count);
	feed->behind = feed->behind || err;
	if (err && feed->scan_ns > instant_now_ns() + SCAN_SOON_NS)
		feed->scan_ns = instant_now_ns() + SCAN_SOON_NS;
}

/* ---- paths, each ended by a NUL */

/* False: no more for now. */
static bool read_paths(struct feed *feed, struct lane *lanes, size_t lane_count)
{
	ssize_t got =
	    read(feed->paths_fd, feed->paths + feed->paths_bytes, sizeof(feed->paths) - feed->paths_bytes);
	char *end;

	if (got < 0 && (errno == EAGAIN || errno == EINTR))
		return errno == EINTR;
	if (got <= 0) {
		close(feed->paths_fd);
		feed->paths_fd = -1;
		return false;
	}
	feed->paths_bytes += (size_t)got;
	while ((end = memchr(feed->paths, '\0', feed->paths_bytes))) {
		size_t length = (size_t)(end + 1 - feed->paths);

		if (!is_other_kind(feed->paths) && offer(feed->paths, lanes, lane_count))
			log_line("%s is not sent: it could not be written to the spool", feed->paths);
		memmove(feed->paths, end + 1, feed->paths_bytes - length);
		feed->paths_bytes -= length;
	}
	if (feed->paths_bytes == sizeof(feed->paths)) /* no path is so long */
		feed->paths_bytes = 0;
	return true;
}

void feed_read(struct feed *feed, const struct pollfd *fds, struct lane *lanes, size_t lane_count)
{
	if (!feed->watch) {
		/* All there is: what was written before `record` asked for the end belongs to it. */
		while (feed->paths_fd >= 0 && fds[0].revents && read_paths(feed, lanes, lane_count))
			;
		return;
	}
	if (watch_fd(feed->watch) >= 0 && fds[0].revents)
		read_events(feed, lanes, lane_count);
	if (feed->scan_ns <= instant_now_ns())
		scan(feed, lanes, lane_count);
}
