/* SPDX-License-Identifier: Apache-2.0 */
/* The part of a spool that is kept by process. */
#include "push/spool.h"

#include "pprof/codec/file.h"
#include "pprof/codec/folder.h"
#include "pprof/text/clock.h"
#include "pprof/text/log_line.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
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

int spool_accepted(const struct spool *spool, uint64_t process, struct delta_table *table)
{
	char name[NAME_BYTES];
	uint8_t *bytes;
	size_t length;
	int err;

	*table = (struct delta_table){0};
	print_name(process, "accepted", name);
	err = file_read_at(spool->state_fd, name, ACCEPTED_MAX_BYTES, &bytes, &length);
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
	char name[NAME_BYTES];
	uint8_t *bytes;
	size_t length;
	int err = delta_encode(table, &bytes, &length);

	if (err)
		return err;
	print_name(process, "accepted", name);
	err = spool_write(spool->state_fd, name, bytes, length, 0);
	free(bytes);
	return err;
}

/* The head has no use any more but its room. By its new name it says, if we are killed now, that something
 * was acknowledged, and not what (spool_accepted()). */
static void make_room_of_head(const struct spool *spool, const struct spool_entry *head)
{
	char from[SPOOL_NAME_BYTES], to[NAME_BYTES];
	int fd;

	spool_name_print(head, from);
	print_name(head->process, "accepted", to);
	if (renameat(spool->folder_fd, from, spool->state_fd, to))
		return;
	fd = openat(spool->state_fd, to, O_WRONLY | O_TRUNC | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0)
		log_line("cannot empty %s: %s", to, strerror(errno));
	else
		close(fd);
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
