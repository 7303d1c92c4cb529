/* SPDX-License-Identifier: Apache-2.0 */
/* The parts of a spool that are kept by process, and the removal of what is of no use any more. */
#include "push/spool.h"

#include "pprof/analysis/since.h"
#include "pprof/codec/decode.h"
#include "pprof/codec/encode.h"
#include "pprof/codec/file.h"
#include "pprof/codec/folder.h"
#include "pprof/model/profile.h"
#include "pprof/text/clock.h"
#include "pprof/text/log_line.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

enum { ACCEPTED_MAX_BYTES = 256 << 20, TAKEN_MAX_BYTES = 64 };

/* Names in `state`: "4aa21527451f2630.taken". */
enum { NAME_BYTES = 32 };

static const char *const kinds[] = {"taken", "accepted"};

static void print_name(uint64_t process, const char *kind, char name[NAME_BYTES])
{
	snprintf(name, NAME_BYTES, "%016" PRIx64 ".%s", process, kind);
}

bool spool_state_parse(const char *name, uint64_t *process)
{
	char again[NAME_BYTES];

	*process = strtoull(name, NULL, 16);
	for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
		print_name(*process, kinds[i], again);
		if (strcmp(name, again) == 0)
			return true;
	}
	return false;
}

/* What is in the spool counts too: it is older than the note if we were killed between the two. */
int64_t spool_taken(const struct spool *spool, uint64_t process)
{
	char name[NAME_BYTES], text[TAKEN_MAX_BYTES + 1];
	int64_t taken = 0;
	uint8_t *bytes;
	size_t length;

	print_name(process, "taken", name);
	if (!file_read_at(spool->state_fd, name, TAKEN_MAX_BYTES, &bytes, &length)) {
		memcpy(text, bytes, length);
		text[length] = '\0';
		taken = strtoll(text, NULL, 10);
		free(bytes);
	}
	for (size_t i = 0; i < spool->count; i++)
		if (spool->entries[i].process == process && spool->entries[i].time_ns > taken)
			taken = spool->entries[i].time_ns;
	return taken;
}

int spool_take(const struct spool *spool, uint64_t process, int64_t time_ns)
{
	char name[NAME_BYTES], text[TAKEN_MAX_BYTES];
	int length = snprintf(text, sizeof(text), "%" PRId64 "\n", time_ns);

	print_name(process, "taken", name);
	return spool_write(spool->state_fd, name, text, (size_t)length, 0);
}

/* Only the time of a process is noted when its last profile was accepted. */
#define ENDED "ended %020" PRId64 "\n"
enum { ENDED_BYTES = 27 };

int spool_accepted(const struct spool *spool, uint64_t process, struct since *since)
{
	char name[NAME_BYTES], text[ENDED_BYTES + 1] = "";
	struct profile *profile = NULL;
	enum decode_error fault = DECODE_OK;
	uint8_t *bytes = NULL;
	size_t length;
	int err;

	*since = (struct since){0};
	print_name(process, "accepted", name);
	err = file_read_at(spool->state_fd, name, ACCEPTED_MAX_BYTES, &bytes, &length);
	if (err == -ENOENT || err == -ENOMEM)
		return err == -ENOMEM ? err : 0;
	if (!err && length == ENDED_BYTES) {
		memcpy(text, bytes, length);
		if (sscanf(text, "ended %" SCNd64, &since->time_ns) != 1)
			err = -EBADMSG;
	} else if (!err) {
		fault = decode_profile(bytes, length, DECODE_MAX_BYTES, &profile);
	}
	free(bytes);
	if (fault == DECODE_NO_MEMORY)
		return -ENOMEM;
	since->unknown = err || fault;
	since->first = profile;
	if (profile)
		since->time_ns = profile_time_ns(profile);
	return 0;
}

static int note_ended(const struct spool *spool, const struct spool_entry *head, const char *name)
{
	char text[ENDED_BYTES + 1];

	snprintf(text, sizeof(text), ENDED, head->time_ns);
	return spool_write(spool->state_fd, name, text, ENDED_BYTES, 0);
}

static int note(const struct spool *spool, const char *name, const struct profile *kept)
{
	uint8_t *bytes;
	size_t length;
	int err = encode_profile(kept, &bytes, &length);

	if (err)
		return err;
	err = spool_write(spool->state_fd, name, bytes, length, 0);
	free(bytes);
	return err;
}

/* The file of the head is of no use any more but for its room. If we are killed now, its new name says that
 * something was acknowledged, and not what (spool_accepted()). */
static void make_room_of_head(const struct spool *spool, const char *from, const char *to)
{
	int fd;

	if (renameat(spool->folder_fd, from, spool->state_fd, to))
		return;
	fd = openat(spool->state_fd, to, O_WRONLY | O_TRUNC | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0)
		log_line("cannot empty %s: %s", to, strerror(errno));
	else
		close(fd);
}

int spool_accept_head(const struct spool *spool, const struct profile *kept)
{
	const struct spool_entry *head = spool_head(spool);
	char from[SPOOL_NAME_BYTES], name[NAME_BYTES];
	int err;

	spool_name_print(head, from);
	print_name(head->process, "accepted", name);
	err = head->last ? note_ended(spool, head, name) : note(spool, name, kept);
	if (err != -ENOSPC && err != -EDQUOT)
		return err;
	make_room_of_head(spool, from, name);
	/* No block of a file is smaller than what note_ended() writes. */
	err = head->last ? note_ended(spool, head, name) : note(spool, name, kept);
	return err == -ENOSPC || err == -EDQUOT ? 0 : err;
}

static bool is_waiting(const struct spool *spool, uint64_t process)
{
	for (size_t i = 0; i < spool->count; i++)
		if (spool->entries[i].process == process)
			return true;
	return false;
}

/* Was the last profile of the process accepted? */
static bool is_ended(int folder_fd, const char *state)
{
	char name[32];
	struct stat st;

	snprintf(name, sizeof(name), "%.16s.accepted", state);
	return !fstatat(folder_fd, name, &st, AT_SYMLINK_NOFOLLOW) && st.st_size == ENDED_BYTES;
}

void spool_forget(struct spool *spool, int64_t age_ns, int64_t ended_ns)
{
	DIR *folder = folder_list(spool->state_fd, ".");
	int64_t now = clock_unix_ns();
	struct dirent *found;
	char name[NAME_BYTES];
	struct stat st;

	while (folder && (found = readdir(folder))) {
		uint64_t process;

		if (!spool_state_parse(found->d_name, &process) || is_waiting(spool, process) ||
		    fstatat(dirfd(folder), found->d_name, &st, AT_SYMLINK_NOFOLLOW) ||
		    st.st_mtim.tv_sec > (now - ended_ns) / 1000000000)
			continue;
		if (st.st_mtim.tv_sec > (now - age_ns) / 1000000000 &&
		    !is_ended(dirfd(folder), found->d_name))
			continue;
		/* All of it at once: by one alone it could not be told that the process has ended. */
		for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
			print_name(process, kinds[i], name);
			unlinkat(dirfd(folder), name, 0);
		}
	}
	if (folder)
		closedir(folder);
}

/* ---- what is of no use any more */

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
