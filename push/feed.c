/* SPDX-License-Identifier: Apache-2.0 */
#include "push/feed.h"

#include "pprof/codec/decode.h"
#include "pprof/codec/file.h"
#include "pprof/profile/origin.h"
#include "pprof/profile/profile.h"
#include "pprof/text/clock.h"
#include "pprof/text/log_line.h"
#include "push/command_line.h"
#include "push/lane.h"
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
#define WAIT_NS      (UINT64_C(1) * 1000000000)  /* for room in a spool that is being emptied */
#define WRITTEN_NS   (INT64_C(60) * 1000000000)  /* a profile is written so long after its time at most */
#define SLICE_NS     (UINT64_C(100) * 1000000)   /* how long requests that are under way may be left alone */

#define PATH_WRITTEN INT64_C(0)

enum { FILE_MAX_BYTES = 1 << 30, PATHS_BYTES = 2 * PATH_MAX };

struct feed {
	struct watch *watch; /* NULL: no folders */
	int paths_fd;        /* -1: none, or at its end */
	bool has_paths;
	char paths[PATHS_BYTES]; /* what was read of a path that is not whole yet */
	size_t paths_bytes;
	struct watch_file *files; /* to be offered, oldest first, from `next` on; NULL: none */
	size_t file_count, next;
	bool scanned;                   /* they are what a scan has found, else what events told of */
	uint64_t go_on_ns;              /* clock_now_ns() when the next of them is due */
	struct version_set seen, found; /* files that need not be read again; those of the scan under way */
	uint64_t scan_ns;               /* clock_now_ns() of the next */
	bool scanned_once;              /* all that lay there at the start has been offered */
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
	watch_files_free(feed->files, feed->file_count);
	version_set_fini(&feed->seen);
	version_set_fini(&feed->found);
	if (feed->paths_fd >= 0)
		close(feed->paths_fd);
	free(feed);
}

size_t feed_fds(const struct feed *feed, struct pollfd fds[FEED_FDS_MAX])
{
	/* First what there is. */
	int fd = feed->files ? -1 : feed->watch ? watch_fd(feed->watch) : feed->paths_fd;

	fds[0] = (struct pollfd){.fd = fd, .events = POLLIN};
	return fd >= 0;
}

uint64_t feed_due_ns(const struct feed *feed)
{
	uint64_t now = clock_now_ns(), due_ns = feed->files ? feed->go_on_ns : feed->scan_ns;

	if (!feed->watch)
		return UINT64_MAX;
	return due_ns > now ? due_ns - now : 0;
}

bool feed_has_ended(const struct feed *feed)
{
	return feed->has_paths && feed->paths_fd < 0;
}

/* ---- one file */

/* 0: it need not be looked at again. -ENOENT: it is gone, or has another name. Another -errno: it must be,
 * since a spool has not taken it; -EAGAIN: soon. written_ns: of a file that came just now; PATH_WRITTEN: one
 * whose path was given, and which need not be waited with; INT64_MAX: it may have been offered before. */
static int offer(const char *path, struct lane *lanes, size_t lane_count, int64_t written_ns)
{
	struct profile *profile;
	struct origin origin;
	uint8_t *bytes;
	size_t length;
	int err = file_read_straight(path, FILE_MAX_BYTES, &bytes, &length);

	if (err) {
		if (err != -ENOENT)
			log_line("cannot read %s: %s", path, strerror(-err));
		return err == -ENOMEM || err == -ENOENT ? err : 0;
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
		int one = lane_offer(&lanes[i], &origin, bytes, length, written_ns != PATH_WRITTEN,
		    origin.time_ns > written_ns - WRITTEN_NS);

		/* A full disk says more than a full spool. */
		err = one && (!err || err == -EAGAIN) ? one : err;
	}
	free(bytes);
	return err;
}

/* Is it older than any target takes? By when it was written, so that it need not be read. */
static bool is_too_old(const struct watch_file *file, const struct lane *lanes, size_t lane_count)
{
	int64_t now = clock_unix_ns();

	for (size_t i = 0; i < lane_count; i++) {
		uint64_t past_ns = target_limits(lanes[i].target)->past_ns;

		if (!past_ns || file->written_ns > now - (int64_t)past_ns)
			return false;
	}
	return true;
}

/* ---- folders */

/* What is not there any more is forgotten on the way. */
static void end_files(struct feed *feed)
{
	watch_files_free(feed->files, feed->file_count);
	feed->files = NULL;
	feed->file_count = 0;
	if (!feed->scanned)
		return;
	version_set_fini(&feed->seen);
	feed->seen = feed->found;
	feed->found = (struct version_set){0};
	feed->behind = false;
	feed->scanned_once = true;
	feed->scan_ns = clock_now_ns() + (watch_fd(feed->watch) < 0 ? SCAN_SOON_NS : SCAN_NS);
}

/* After a file that could not be spooled none is tried: a later one of the same process would count as
 * newer. */
static void fall_behind(struct feed *feed)
{
	watch_files_free(feed->files, feed->file_count);
	feed->files = NULL;
	feed->file_count = 0;
	version_set_fini(&feed->found);
	feed->behind = true;
	if (feed->scanned || feed->scan_ns > clock_now_ns() + SCAN_SOON_NS)
		feed->scan_ns = clock_now_ns() + SCAN_SOON_NS;
}

static void begin_files(struct feed *feed, struct watch_file *files, size_t count, bool scanned)
{
	feed->files = files;
	feed->file_count = count;
	feed->next = 0;
	feed->go_on_ns = 0;
	feed->scanned = scanned;
	if (!count)
		end_files(feed);
}

/* Offers files in their order, for a while. */
static void offer_files(struct feed *feed, struct lane *lanes, size_t lane_count)
{
	uint64_t end_ns = clock_now_ns() + SLICE_NS;
	struct version_set *set = feed->scanned ? &feed->found : &feed->seen;
	int err = 0;

	while (feed->next < feed->file_count && !err && clock_now_ns() < end_ns) {
		const struct watch_file *file = &feed->files[feed->next];
		bool gone = false;

		if (!version_set_has(&feed->seen, file->version) && !is_too_old(file, lanes, lane_count))
			err = offer(file->path, lanes, lane_count,
			    feed->scanned_once && !feed->behind ? file->written_ns : INT64_MAX);
		/* By its new name it is the same version, and has not been read. */
		gone = err == -ENOENT;
		err = gone ? 0 : err;
		if (!err && !gone)
			version_set_add(set, file->version);
		feed->next += !err;
	}
	if (err == -EAGAIN)
		feed->go_on_ns = clock_now_ns() + WAIT_NS;
	else if (err)
		fall_behind(feed);
	else if (feed->next == feed->file_count)
		end_files(feed);
}

static void scan(struct feed *feed)
{
	struct watch_file *files;
	size_t count;

	if (watch_scan(feed->watch, &files, &count)) {
		feed->scanned = true;
		fall_behind(feed);
	} else {
		begin_files(feed, files, count, true);
	}
}

static void read_events(struct feed *feed)
{
	struct watch_file *files;
	size_t count;

	if (watch_read(feed->watch, &files, &count))
		feed->scan_ns = 0;
	else if (feed->behind)
		watch_files_free(files, count);
	else
		begin_files(feed, files, count, false);
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

		int err = offer(feed->paths, lanes, lane_count, PATH_WRITTEN);

		if (err && err != -ENOENT)
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
	if (!feed->files && watch_fd(feed->watch) >= 0 && fds[0].revents)
		read_events(feed);
	if (!feed->files && feed->scan_ns <= clock_now_ns())
		scan(feed);
	if (feed->files && feed->go_on_ns <= clock_now_ns())
		offer_files(feed, lanes, lane_count);
}
