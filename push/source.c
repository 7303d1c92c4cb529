/* SPDX-License-Identifier: Apache-2.0 */
#include "push/source.h"

#include "pprof/codec/decode.h"
#include "pprof/codec/file.h"
#include "pprof/model/origin.h"
#include "pprof/model/profile.h"
#include "pprof/text/clock.h"
#include "pprof/text/log_line.h"
#include "push/command_line.h"
#include "push/number_set.h"
#include "push/target_queue.h"

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

struct source {
	struct watch *watch; /* NULL: no folders */
	int paths_fd;        /* -1: none, or at its end */
	bool has_paths;
	char paths[PATHS_BYTES]; /* what was read of a path that is not whole yet */
	size_t paths_bytes;
	struct watch_file *files; /* to be offered, oldest first, from `next` on; NULL: none */
	size_t file_count, next;
	bool scanned;      /* they are what a scan has found, else what events told of */
	uint64_t go_on_ns; /* clock_now_ns() when the next of them is due */
	struct number_set seen,
	    found;         /* files that need not be read again; and the same of the scan under way */
	uint64_t scan_ns;  /* clock_now_ns() of the next */
	bool scanned_once; /* all that lay there at the start has been offered */
	bool behind;       /* a file could not be spooled: a scan goes on from that file */
};

struct source *source_new(char *const *folders, int paths_fd)
{
	struct source *source = calloc(1, sizeof(*source));
	size_t count = 0;

	if (!source)
		return NULL;
	while (folders[count])
		count++;
	source->paths_fd = paths_fd;
	source->has_paths = paths_fd >= 0;
	if (source->has_paths)
		fcntl(paths_fd, F_SETFL, O_NONBLOCK);
	if (!source->has_paths)
		source->watch = watch_new(folders, count);
	if (source->has_paths || source->watch)
		return source;
	free(source);
	return NULL;
}

void source_free(struct source *source)
{
	if (!source)
		return;
	watch_free(source->watch);
	watch_files_free(source->files, source->file_count);
	number_set_fini(&source->seen);
	number_set_fini(&source->found);
	if (source->paths_fd >= 0)
		close(source->paths_fd);
	free(source);
}

size_t source_fds(const struct source *source, struct pollfd fds[SOURCE_FDS_MAX])
{
	/* First what there is. */
	int fd = source->files ? -1 : source->watch ? watch_fd(source->watch) : source->paths_fd;

	fds[0] = (struct pollfd){.fd = fd, .events = POLLIN};
	return fd >= 0;
}

uint64_t source_due_ns(const struct source *source)
{
	uint64_t now = clock_now_ns(), due_ns = source->files ? source->go_on_ns : source->scan_ns;

	if (!source->watch)
		return UINT64_MAX;
	return due_ns > now ? due_ns - now : 0;
}

bool source_has_ended(const struct source *source)
{
	return source->has_paths && source->paths_fd < 0;
}

/* ---- one file */

/* Offers a file. 0: it need not be looked at again. -ENOENT: it is gone, or has another name. Another -errno:
 * it must be looked at again, since a spool has not taken it; after -EAGAIN soon. written_ns: when a file
 * that has just come was written; PATH_WRITTEN: its path was given, so it is whole; INT64_MAX: it may have
 * been offered before. */
static int offer(const char *path, struct target_queue *queues, size_t queue_count, int64_t written_ns)
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
	for (size_t i = 0; i < queue_count; i++) {
		int one = target_queue_offer(&queues[i], &origin, bytes, length, written_ns != PATH_WRITTEN,
		    origin.time_ns > written_ns - WRITTEN_NS);

		/* A full disk says more than a full spool. */
		err = one && (!err || err == -EAGAIN) ? one : err;
	}
	free(bytes);
	return err;
}

/* Is it older than any target takes? By when it was written, so that it need not be read. */
static bool is_too_old(const struct watch_file *file, const struct target_queue *queues, size_t queue_count)
{
	int64_t now = clock_unix_ns();

	for (size_t i = 0; i < queue_count; i++) {
		uint64_t past_ns = target_limits(queues[i].target)->past_ns;

		if (!past_ns || file->written_ns > now - (int64_t)past_ns)
			return false;
	}
	return true;
}

/* ---- folders */

/* What is not there any more is forgotten on the way. */
static void end_files(struct source *source)
{
	watch_files_free(source->files, source->file_count);
	source->files = NULL;
	source->file_count = 0;
	if (!source->scanned)
		return;
	number_set_fini(&source->seen);
	source->seen = source->found;
	source->found = (struct number_set){0};
	source->behind = false;
	source->scanned_once = true;
	source->scan_ns = clock_now_ns() + (watch_fd(source->watch) < 0 ? SCAN_SOON_NS : SCAN_NS);
}

/* After a file that could not be spooled none is tried: a later one of the same process would count as
 * newer. */
static void fall_behind(struct source *source)
{
	watch_files_free(source->files, source->file_count);
	source->files = NULL;
	source->file_count = 0;
	number_set_fini(&source->found);
	source->behind = true;
	if (source->scanned || source->scan_ns > clock_now_ns() + SCAN_SOON_NS)
		source->scan_ns = clock_now_ns() + SCAN_SOON_NS;
}

static void begin_files(struct source *source, struct watch_file *files, size_t count, bool scanned)
{
	source->files = files;
	source->file_count = count;
	source->next = 0;
	source->go_on_ns = 0;
	source->scanned = scanned;
	if (!count)
		end_files(source);
}

/* Offers files in their order, for a while. */
static void offer_files(struct source *source, struct target_queue *queues, size_t queue_count)
{
	uint64_t end_ns = clock_now_ns() + SLICE_NS;
	struct number_set *set = source->scanned ? &source->found : &source->seen;
	int err = 0;

	while (source->next < source->file_count && !err && clock_now_ns() < end_ns) {
		const struct watch_file *file = &source->files[source->next];
		bool gone = false;

		if (!number_set_has(&source->seen, file->version) && !is_too_old(file, queues, queue_count))
			err = offer(file->path, queues, queue_count,
			    source->scanned_once && !source->behind ? file->written_ns : INT64_MAX);
		/* By its new name it is the same version, and has not been read. */
		gone = err == -ENOENT;
		err = gone ? 0 : err;
		if (!err && !gone)
			number_set_add(set, file->version);
		source->next += !err;
	}
	if (err == -EAGAIN)
		source->go_on_ns = clock_now_ns() + WAIT_NS;
	else if (err)
		fall_behind(source);
	else if (source->next == source->file_count)
		end_files(source);
}

static void scan(struct source *source)
{
	struct watch_file *files;
	size_t count;

	if (watch_scan(source->watch, &files, &count)) {
		source->scanned = true;
		fall_behind(source);
	} else {
		begin_files(source, files, count, true);
	}
}

static void read_events(struct source *source)
{
	struct watch_file *files;
	size_t count;

	if (watch_read(source->watch, &files, &count))
		source->scan_ns = 0;
	else if (source->behind)
		watch_files_free(files, count);
	else
		begin_files(source, files, count, false);
}

/* ---- paths, each ended by a NUL */

/* False: no more for now. */
static bool read_paths(struct source *source, struct target_queue *queues, size_t queue_count)
{
	ssize_t got = read(source->paths_fd, source->paths + source->paths_bytes,
	    sizeof(source->paths) - source->paths_bytes);
	char *end;

	if (got < 0 && (errno == EAGAIN || errno == EINTR))
		return errno == EINTR;
	if (got <= 0) {
		close(source->paths_fd);
		source->paths_fd = -1;
		return false;
	}
	source->paths_bytes += (size_t)got;
	while ((end = memchr(source->paths, '\0', source->paths_bytes))) {
		size_t length = (size_t)(end + 1 - source->paths);

		int err = offer(source->paths, queues, queue_count, PATH_WRITTEN);

		if (err && err != -ENOENT)
			log_line("%s is not sent: it could not be written to the spool", source->paths);
		memmove(source->paths, end + 1, source->paths_bytes - length);
		source->paths_bytes -= length;
	}
	if (source->paths_bytes == sizeof(source->paths)) /* no path is so long */
		source->paths_bytes = 0;
	return true;
}

void source_read(
    struct source *source, const struct pollfd *fds, struct target_queue *queues, size_t queue_count)
{
	if (!source->watch) {
		/* All there is: what was written before `record` asked for the end belongs to it. */
		while (source->paths_fd >= 0 && fds[0].revents && read_paths(source, queues, queue_count))
			;
		return;
	}
	if (!source->files && watch_fd(source->watch) >= 0 && fds[0].revents)
		read_events(source);
	if (!source->files && source->scan_ns <= clock_now_ns())
		scan(source);
	if (source->files && source->go_on_ns <= clock_now_ns())
		offer_files(source, queues, queue_count);
}
