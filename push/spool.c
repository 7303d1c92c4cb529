/* SPDX-License-Identifier: Apache-2.0 */
#include "push/spool.h"

#include "pprof/codec/file.h"
#include "pprof/codec/folder.h"
#include "pprof/service/spool_list.h"
#include "pprof/table/array.h"
#include "pprof/text/log_line.h"
#include "pprof/text/text.h"
#include "push/instant.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

enum { MODE = 0600, COUNTERS_FILE_BYTES = 4096, SPOOLED_MAX_BYTES = 1 << 30, HALF_WRITTEN_S = 60 };

int spool_path(const char *name, char *path, size_t path_bytes)
{
	char folder[PATH_MAX];
	int err = spool_list_folder(folder, sizeof(folder));

	if (err)
		return err;
	return (size_t)snprintf(path, path_bytes, "%s/%s", folder, name) < path_bytes ? 0 : -ENAMETOOLONG;
}

static void path_in(const struct spool *spool, const char *name, char path[PATH_MAX])
{
	snprintf(path, PATH_MAX, "%s/%s", spool->path, name);
}

static void entry_path(const struct spool *spool, const struct spool_entry *entry, char path[PATH_MAX])
{
	char name[SPOOL_NAME_BYTES];

	spool_name_print(entry, name);
	path_in(spool, name, path);
}

static void write_counters(const struct spool *spool)
{
	char path[PATH_MAX], text[SPOOL_COUNTERS_BYTES];
	size_t length = spool_counters_print(&spool->counters, text);

	if (spool->lock_fd < 0)
		return;
	path_in(spool, "counters", path);
	file_publish(path, text, length, MODE, 0);
}

static void read_counters(struct spool *spool)
{
	char path[PATH_MAX];
	uint8_t *bytes;
	size_t length;

	path_in(spool, "counters", path);
	if (file_read(path, COUNTERS_FILE_BYTES, &bytes, &length))
		return;
	spool_counters_parse(bytes, length, &spool->counters);
	free(bytes);
}

/* ---- entries */

/* Takes an entry out of the list and of the folder. */
static void remove_at(struct spool *spool, size_t at)
{
	char path[PATH_MAX];

	entry_path(spool, &spool->entries[at], path);
	if (unlink(path) && errno != ENOENT)
		log_line("cannot remove %s: %s", path, strerror(errno));
	if (spool->entries[at].number == spool->counters.sending)
		spool->counters.sending = 0;
	spool->bytes -= spool->entries[at].bytes;
	spool->count--;
	memmove(&spool->entries[at], &spool->entries[at + 1], (spool->count - at) * sizeof(*spool->entries));
}

/* Drops the oldest, but not what is being sent, until the rest fits. */
static void make_room(struct spool *spool)
{
	size_t dropped = 0, at;

	while (spool->lock_fd >= 0 && spool->bytes > spool->budget_bytes) {
		at = spool->in_flight && spool->entries[0].number == spool->in_flight;
		if (at >= spool->count)
			break;
		remove_at(spool, at);
		dropped++;
	}
	if (!dropped)
		return;
	spool->counters.dropped += dropped;
	write_counters(spool);
	log_line("%s: %zu profile%s dropped, the oldest: the spool is full", spool->path, dropped,
	    dropped == 1 ? "" : "s");
}

static int compare_entries(const void *a, const void *b)
{
	const struct spool_entry *x = a, *y = b;

	if (x->number != y->number)
		return x->number < y->number ? -1 : 1;
	return x->process < y->process ? -1 : x->process > y->process;
}

int spool_scan(struct spool *spool)
{
	DIR *folder = opendir(spool->path);
	struct dirent *found;
	struct stat st;
	int err = folder ? 0 : -errno;

	spool->count = 0;
	spool->bytes = 0;
	/* Before it is read: what comes meanwhile is found by the next look. */
	if (folder && !fstat(dirfd(folder), &st))
		spool->looked = st.st_mtim;
	while (!err && (found = readdir(folder))) {
		struct spool_entry entry = {0};

		if (!spool_name_parse(found->d_name, &entry) ||
		    fstatat(dirfd(folder), found->d_name, &st, AT_SYMLINK_NOFOLLOW) || !S_ISREG(st.st_mode))
			continue;
		entry.bytes = (uint64_t)st.st_size;
		err = array_reserve(&spool->entries, &spool->room, spool->count + 1, sizeof(entry));
		if (!err)
			spool->entries[spool->count++] = entry;
		spool->bytes += entry.bytes;
	}
	if (folder)
		closedir(folder);
	if (spool->count)
		qsort(spool->entries, spool->count, sizeof(*spool->entries), compare_entries);
	make_room(spool);
	return err;
}

int spool_look(struct spool *spool)
{
	struct stat st;

	if (stat(spool->path, &st))
		return -errno;
	/* A file that came in the same tick of the file system's clock does not show in the time. */
	if (st.st_mtim.tv_sec == spool->looked.tv_sec && st.st_mtim.tv_nsec == spool->looked.tv_nsec &&
	    instant_unix_ns() / 1000000000 > st.st_mtim.tv_sec + 1)
		return 0;
	return spool_scan(spool);
}

bool spool_is_full(const struct spool *spool, uint64_t bytes)
{
	return spool->count && spool->bytes + bytes > spool->budget_bytes;
}

int spool_add(struct spool *spool, struct spool_entry *entry, const void *bytes, size_t length)
{
	char path[PATH_MAX];
	int err = array_reserve(&spool->entries, &spool->room, spool->count + 1, sizeof(*entry));

	entry->bytes = length;
	/* Microseconds, so that the order is that of arrival whoever adds. */
	entry->number = (uint64_t)instant_unix_ns() / 1000;
	if (spool->count && entry->number < spool->entries[spool->count - 1].number)
		entry->number = spool->entries[spool->count - 1].number;
	while (!err) {
		entry->number++;
		entry_path(spool, entry, path);
		err = file_publish(path, bytes, length, MODE, FILE_NO_REPLACE);
		if (err != -EEXIST)
			break;
		err = 0;
	}
	if (err)
		return err;
	spool->entries[spool->count++] = *entry;
	spool->bytes += length;
	make_room(spool);
	return 0;
}

/* The place of the entry that is being sent, or was when the answer was missed, or else the first. Others may
 * have added older ones meanwhile. */
static size_t head_at(const struct spool *spool)
{
	uint64_t number = spool->in_flight ? spool->in_flight : spool->counters.sending;

	for (size_t i = 0; i < spool->count; i++)
		if (spool->entries[i].number == number)
			return i;
	return 0;
}

const struct spool_entry *spool_head(const struct spool *spool)
{
	return spool->count ? &spool->entries[head_at(spool)] : NULL;
}

uint64_t spool_another(const struct spool *spool, uint64_t number)
{
	uint64_t process = 0, next = 0;

	for (size_t i = 0; i < spool->count; i++)
		if (spool->entries[i].number == number)
			process = spool->entries[i].process;
	for (size_t i = 0; i < spool->count; i++) {
		if (spool->entries[i].process != process)
			return spool->entries[i].number;
		if (!next && spool->entries[i].number > number)
			next = spool->entries[i].number;
	}
	return next;
}

int spool_read(const struct spool *spool, uint8_t **bytes, size_t *length)
{
	char path[PATH_MAX];

	entry_path(spool, spool_head(spool), path);
	return file_read(path, SPOOLED_MAX_BYTES, bytes, length);
}

void spool_skip(struct spool *spool)
{
	remove_at(spool, head_at(spool));
	spool->in_flight = 0;
}

void spool_sent(struct spool *spool)
{
	/* Together, so that whoever finds it here after a kill knows whether it has been counted. */
	spool->counters.sent++;
	spool->counters.sending = 0;
	write_counters(spool);
	spool_skip(spool);
}

void spool_drop(struct spool *spool)
{
	spool_skip(spool);
	spool->counters.dropped++;
	write_counters(spool);
}

void spool_passed_over(struct spool *spool)
{
	spool->counters.passed_over++;
	write_counters(spool);
}

void spool_sending(struct spool *spool)
{
	uint64_t number = spool_head(spool)->number;

	spool->in_flight = number;
	if (spool->counters.sending == number)
		spool->counters.resent++;
	spool->counters.sending = number;
	write_counters(spool);
}

void spool_judged(struct spool *spool, enum retry_verdict verdict)
{
	if (verdict == RETRY_DENIED)
		spool->counters.denied++;
	else if (verdict == RETRY_ACCEPTED || verdict == RETRY_REFUSED)
		spool->counters.denied = 0;
}

void spool_retried(struct spool *spool, bool unread)
{
	spool->in_flight = 0;
	if (!unread)
		spool->counters.sending = 0;
	spool->counters.retried++;
	write_counters(spool);
}

/* ---- rejected */

static int compare_names(const struct dirent **a, const struct dirent **b)
{
	return strcmp((*a)->d_name, (*b)->d_name);
}

/* Profiles, not the texts beside them. */
static int is_profile(const struct dirent *entry)
{
	struct spool_entry parsed = {0};

	return spool_name_parse(entry->d_name, &parsed);
}

static void keep_last(const char *folder)
{
	struct dirent **names;
	int count = scandir(folder, &names, is_profile, compare_names);
	char path[PATH_MAX + 512];

	for (int i = 0; i < count; i++) {
		if (i < count - SPOOL_REJECTED_KEPT) {
			snprintf(path, sizeof(path), "%s/%s", folder, names[i]->d_name);
			unlink(path);
			snprintf(path, sizeof(path), "%s/%s.txt", folder, names[i]->d_name);
			unlink(path);
		}
		free(names[i]);
	}
	if (count >= 0)
		free(names);
}

/* counter: one of the spool's. */
static void move_aside(struct spool *spool, const char *answer, uint64_t *counter)
{
	char from[PATH_MAX], to[PATH_MAX], name[SPOOL_NAME_BYTES], text[PATH_MAX + SPOOL_NAME_BYTES + 8];

	spool_name_print(spool_head(spool), name);
	entry_path(spool, spool_head(spool), from);
	path_in(spool, "rejected", to);
	mkdir(to, 0700);
	snprintf(text, sizeof(text), "%s/%s.txt", to, name);
	file_publish(text, answer, strlen(answer), MODE, 0);
	text_append(to, sizeof(to), "/%s", name);
	if (rename(from, to))
		log_line("cannot move %s to %s: %s", from, to, strerror(errno));
	spool_skip(spool);
	path_in(spool, "rejected", to);
	keep_last(to);
	++*counter;
	write_counters(spool);
}

void spool_reject(struct spool *spool, const char *answer)
{
	move_aside(spool, answer, &spool->counters.rejected);
}

void spool_give_up(struct spool *spool, const char *answer)
{
	move_aside(spool, answer, &spool->counters.given_up);
}

/* ---- the folder */

bool spool_lock(struct spool *spool)
{
	char path[PATH_MAX];
	int fd;

	if (spool->lock_fd >= 0)
		return true;
	path_in(spool, "lock", path);
	fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, MODE);
	if (fd < 0)
		return false;
	if (flock(fd, LOCK_EX | LOCK_NB)) {
		close(fd);
		return false;
	}
	spool->lock_fd = fd;
	read_counters(spool);
	return true;
}

/* Makes the folder and opens it, and again should it be removed in between. 0 or -errno. */
static int open_folder(struct spool *spool)
{
	char state[PATH_MAX];
	struct stat st;

	path_in(spool, "state", state);
	for (;;) {
		struct folder folder;
		int err = folder_open(&folder, NULL, state, FOLDER_MAKE, 0777);

		if (!err) {
			err = file_check_folder(folder.fd);
			folder_close(&folder);
		}
		chmod(spool->path, 0700);
		if (!err)
			spool->folder_fd = open(spool->path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
		if (err || spool->folder_fd < 0)
			return err ? err : -errno;
		if (flock(spool->folder_fd, LOCK_SH) || fstat(spool->folder_fd, &st) || st.st_nlink)
			return 0;
		close(spool->folder_fd);
	}
}

int spool_open(struct spool *spool, const char *path, uint64_t budget_bytes)
{
	int err;

	*spool = (struct spool){.folder_fd = -1, .lock_fd = -1, .budget_bytes = budget_bytes};
	if (strlen(path) >= sizeof(spool->path))
		return -ENAMETOOLONG;
	strcpy(spool->path, path);
	err = open_folder(spool);
	if (err)
		return err;
	spool_lock(spool);
	return spool_scan(spool);
}

void spool_tidy(const struct spool *spool)
{
	static const char *const folders[] = {".", "state", "rejected"};
	time_t before = (time_t)(instant_unix_ns() / 1000000000) - HALF_WRITTEN_S;

	for (size_t i = 0; i < sizeof(folders) / sizeof(folders[0]); i++) {
		char path[PATH_MAX];
		struct dirent *found;
		struct stat st;
		DIR *folder;

		path_in(spool, folders[i], path);
		folder = opendir(path);
		while (folder && (found = readdir(folder)))
			if (file_is_temporary(found->d_name) &&
			    !fstatat(dirfd(folder), found->d_name, &st, AT_SYMLINK_NOFOLLOW) &&
			    st.st_mtim.tv_sec < before)
				unlinkat(dirfd(folder), found->d_name, 0);
		if (folder)
			closedir(folder);
	}
}

static void remove_below(const struct spool *spool, const char *name)
{
	char path[PATH_MAX];
	struct dirent *found;
	DIR *folder;

	path_in(spool, name, path);
	folder = opendir(path);
	while (folder && (found = readdir(folder)))
		unlinkat(dirfd(folder), found->d_name, 0);
	if (folder)
		closedir(folder);
	rmdir(path);
}

void spool_remove(struct spool *spool)
{
	char path[PATH_MAX];

	path_in(spool, "rejected", path);
	if (spool->lock_fd < 0 || flock(spool->folder_fd, LOCK_EX | LOCK_NB) || spool_scan(spool) ||
	    spool->count || (rmdir(path) && errno != ENOENT))
		return;
	remove_below(spool, "state");
	remove_below(spool, ".");
	if (rmdir(spool->path))
		log_line("cannot remove %s: %s", spool->path, strerror(errno));
}

void spool_close(struct spool *spool)
{
	if (spool->lock_fd >= 0)
		close(spool->lock_fd);
	if (spool->folder_fd >= 0)
		close(spool->folder_fd);
	free(spool->entries);
	spool->entries = NULL;
	spool->count = 0;
	spool->lock_fd = spool->folder_fd = -1;
}
