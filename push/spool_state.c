/* SPDX-License-Identifier: Apache-2.0 */
/* The part of a spool that is kept by process. */
#include "push/spool.h"

#include "pprof/codec/file.h"
#include "pprof/text/log_line.h"
#include "push/instant.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { MODE = 0600, ACCEPTED_MAX_BYTES = 256 << 20, TAKEN_MAX_BYTES = 64 };

static void state_path(const struct spool *spool, uint64_t process, const char *kind, char path[PATH_MAX])
{
	snprintf(path, PATH_MAX, "%s/state/%016" PRIx64 ".%s", spool->path, process, kind);
}

/* What is in the spool counts too: it is older than the note if we were killed between the two. */
int64_t spool_taken(const struct spool *spool, uint64_t process)
{
	char path[PATH_MAX], text[TAKEN_MAX_BYTES + 1];
	int64_t taken = 0;
	uint8_t *bytes;
	size_t length;

	state_path(spool, process, "taken", path);
	if (!file_read(path, TAKEN_MAX_BYTES, &bytes, &length)) {
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
	char path[PATH_MAX], text[TAKEN_MAX_BYTES];
	int length = snprintf(text, sizeof(text), "%" PRId64 "\n", time_ns);

	state_path(spool, process, "taken", path);
	return file_publish(path, text, (size_t)length, MODE, 0);
}

int spool_accepted(const struct spool *spool, uint64_t process, struct delta_table *table)
{
	char path[PATH_MAX];
	uint8_t *bytes;
	size_t length;
	int err;

	*table = (struct delta_table){0};
	state_path(spool, process, "accepted", path);
	err = file_read(path, ACCEPTED_MAX_BYTES, &bytes, &length);
	if (err == -ENOENT)
		return 0;
	if (!err) {
		err = delta_decode(bytes, length, table);
		free(bytes);
	}
	if (err && err != -ENOMEM)
		table->unknown = true;
	return err == -ENOMEM ? err : 0;
}

int spool_accept(const struct spool *spool, uint64_t process, const struct delta_table *table)
{
	char path[PATH_MAX];
	uint8_t *bytes;
	size_t length;
	int err = delta_encode(table, &bytes, &length);

	if (err)
		return err;
	state_path(spool, process, "accepted", path);
	err = file_publish(path, bytes, length, MODE, 0);
	free(bytes);
	return err;
}

/* The head has no use any more but its room. By its new name it says, if we are killed now, that something
 * was acknowledged, and not what (spool_accepted()). */
static void make_room_of_head(const struct spool *spool, const struct spool_entry *head)
{
	char from[PATH_MAX], to[PATH_MAX], name[SPOOL_NAME_BYTES];

	spool_name_print(head, name);
	snprintf(from, sizeof(from), "%s/%s", spool->path, name);
	state_path(spool, head->process, "accepted", to);
	if (!rename(from, to) && truncate(to, 0))
		log_line("cannot empty %s: %s", to, strerror(errno));
}

int spool_accept_head(const struct spool *spool, const struct delta_table *table)
{
	const struct spool_entry *head = spool_head(spool);
	const struct delta_table unknown = {.time_ns = table->time_ns, .unknown = true};
	int err = spool_accept(spool, head->process, table);

	if (err != -ENOSPC && err != -EDQUOT)
		return err;
	make_room_of_head(spool, head);
	err = spool_accept(spool, head->process, table);
	/* No block of a file is smaller than that. */
	return err ? spool_accept(spool, head->process, &unknown) : 0;
}

static bool is_waiting(const struct spool *spool, uint64_t process)
{
	for (size_t i = 0; i < spool->count; i++)
		if (spool->entries[i].process == process)
			return true;
	return false;
}

/* Is it what is noted of a process whose last profile was accepted: its time, and no totals? */
static bool is_ended(int folder_fd, const char *state)
{
	char name[32];
	struct stat st;

	snprintf(name, sizeof(name), "%.16s.accepted", state);
	return !fstatat(folder_fd, name, &st, AT_SYMLINK_NOFOLLOW) && st.st_size == DELTA_ENDED_BYTES;
}

void spool_forget(struct spool *spool, int64_t age_ns, int64_t ended_ns)
{
	char path[PATH_MAX];
	struct dirent *found;
	static const char *const kinds[] = {"taken", "accepted"};
	int64_t now = instant_unix_ns();
	struct stat st;
	DIR *folder;

	snprintf(path, sizeof(path), "%s/state", spool->path);
	folder = opendir(path);
	while (folder && (found = readdir(folder))) {
		char *end;
		uint64_t process = strtoull(found->d_name, &end, 16);

		if (end != found->d_name + 16 || *end != '.' || is_waiting(spool, process) ||
		    fstatat(dirfd(folder), found->d_name, &st, AT_SYMLINK_NOFOLLOW) ||
		    st.st_mtim.tv_sec > (now - ended_ns) / 1000000000)
			continue;
		if (st.st_mtim.tv_sec > (now - age_ns) / 1000000000 &&
		    !is_ended(dirfd(folder), found->d_name))
			continue;
		/* All of it at once: by one alone it could not be told that the process has ended. */
		for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
			state_path(spool, process, kinds[i], path);
			unlink(path);
		}
	}
	if (folder)
		closedir(folder);
}
