/* SPDX-License-Identifier: Apache-2.0 */
#include "push/spool.h"

#include "pprof/codec/file.h"
#include "pprof/codec/folder.h"
#include "pprof/store/spool_files.h"
#include "pprof/table/array.h"
#include "pprof/text/clock.h"
#include "pprof/text/log_line.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

enum { MODE = 0600, COUNTERS_FILE_BYTES = 4096, SPOOLED_MAX_BYTES = 1 << 30, DENIED_S = 24 * 3600 };

int spool_path(const char *name, char *path, size_t path_bytes)
{
	char folder[PATH_MAX];
	int err = spool_list_folder(folder, sizeof(folder));

	if (err)
		return err;
	return (size_t)snprintf(path, path_bytes, "%s/%s", folder, name) < path_bytes ? 0 : -ENAMETOOLONG;
}

int spool_write(int folder_fd, const char *name, const void *bytes, size_t length, unsigned int flags)
{
	return file_publish_at(folder_fd, name, bytes, length, MODE, (gid_t)-1, flags);
}

static void write_counters(const struct spool *spool)
{
	char text[SPOOL_COUNTERS_BYTES];
	size_t length = spool_counters_print(&spool->counters, text);

	if (spool->lock_fd >= 0)
		spool_write(spool->folder_fd, "counters", text, length, 0);
}

static void read_counters(struct spool *spool)
{
	uint8_t *bytes;
	size_t length;

	if (file_read_at(spool->folder_fd, "counters", COUNTERS_FILE_BYTES, &bytes, &length))
		return;
	spool_counters_parse(bytes, length, &spool->counters);
	free(bytes);
}

/* ---- entries */

/* Takes an entry out of the list and of the folder. */
static void remove_at(struct spool *spool, size_t at)
{
	char name[SPOOL_NAME_BYTES];

	spool_name_print(&spool->entries[at], name);
	if (unlinkat(spool->folder_fd, name, 0) && errno != ENOENT)
		log_line("cannot remove %s/%s: %s", spool->path, name, strerror(errno));
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
	DIR *folder = folder_list(spool->folder_fd, ".");
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

	if (fstat(spool->folder_fd, &st))
		return -errno;
	/* A file that came in the same tick of the file system's clock does not show in the time. */
	if (st.st_mtim.tv_sec == spool->looked.tv_sec && st.st_mtim.tv_nsec == spool->looked.tv_nsec &&
	    clock_unix_ns() / 1000000000 > st.st_mtim.tv_sec + 1)
		return 0;
	return spool_scan(spool);
}

bool spool_is_full(const struct spool *spool, uint64_t bytes)
{
	return spool->count && spool->bytes + bytes > spool->budget_bytes;
}

int spool_add(struct spool *spool, struct spool_entry *entry, const void *bytes, size_t length)
{
	char name[SPOOL_NAME_BYTES];
	int err = array_reserve(&spool->entries, &spool->room, spool->count + 1, sizeof(*entry));

	entry->bytes = length;
	/* Microseconds: entries are in the order of their arrival, whichever process adds them. */
	entry->number = (uint64_t)clock_unix_ns() / 1000;
	if (spool->count && entry->number < spool->entries[spool->count - 1].number)
		entry->number = spool->entries[spool->count - 1].number;
	while (!err) {
		entry->number++;
		spool_name_print(entry, name);
		err = spool_write(spool->folder_fd, name, bytes, length, FILE_NO_REPLACE);
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

/* The place of the entry that is being sent, or that was being sent when the answer was missed; else the
 * first. Other processes may have added older entries meanwhile. */
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
	char name[SPOOL_NAME_BYTES];

	spool_name_print(spool_head(spool), name);
	return file_read_at(spool->folder_fd, name, SPOOLED_MAX_BYTES, bytes, length);
}

void spool_skip(struct spool *spool)
{
	remove_at(spool, head_at(spool));
	spool->in_flight = 0;
}

void spool_sent(struct spool *spool)
{
	/* Written together, so that a process that finds the entry here after a kill knows whether it has
	 * been counted. */
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

static uint64_t now_s(void)
{
	return (uint64_t)clock_unix_ns() / 1000000000;
}

void spool_judged(struct spool *spool, enum answer_verdict verdict)
{
	struct spool_counters *counters = &spool->counters;

	if (verdict == ANSWER_ACCEPTED || verdict == ANSWER_REFUSED)
		counters->denied = counters->denied_since_s = 0;
	if (verdict != ANSWER_DENIED)
		return;
	counters->denied++;
	if (!counters->denied_since_s || counters->denied_since_s > now_s()) /* the clock was set back */
		counters->denied_since_s = now_s();
}

bool spool_is_denied_for_a_day(const struct spool *spool)
{
	const uint64_t before_s = now_s() - DENIED_S;

	/* An entry's number is its time of arrival in microseconds: see spool_add(). */
	return spool->counters.denied && spool->counters.denied_since_s <= before_s &&
	    spool_head(spool)->number / 1000000 <= before_s;
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

static void keep_last(int folder_fd)
{
	struct dirent **names;
	int count = scandirat(folder_fd, ".", &names, is_profile, compare_names);
	char text[SPOOL_NAME_BYTES + 8];

	for (int i = 0; i < count; i++) {
		if (i < count - SPOOL_REJECTED_KEPT) {
			snprintf(text, sizeof(text), "%.79s.txt", names[i]->d_name);
			unlinkat(folder_fd, names[i]->d_name, 0);
			unlinkat(folder_fd, text, 0);
		}
		free(names[i]);
	}
	if (count >= 0)
		free(names);
}

/* The folder of what was refused, or -errno. */
static int open_rejected(const struct spool *spool)
{
	int fd;

	mkdirat(spool->folder_fd, SPOOL_REJECTED, 0700);
	fd = openat(spool->folder_fd, SPOOL_REJECTED, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	return fd < 0 ? -errno : fd;
}

/* counter: one of the spool's. */
static void move_aside(struct spool *spool, const char *answer, uint64_t *counter)
{
	char name[SPOOL_NAME_BYTES], text[SPOOL_NAME_BYTES + 8];
	int to = open_rejected(spool), err = to < 0 ? to : 0;

	spool_name_print(spool_head(spool), name);
	snprintf(text, sizeof(text), "%s.txt", name);
	if (!err)
		spool_write(to, text, answer, strlen(answer), 0);
	if (!err && renameat(spool->folder_fd, name, to, name))
		err = -errno;
	if (err)
		log_line("cannot move %s/%s to " SPOOL_REJECTED "/: %s", spool->path, name, strerror(-err));
	spool_skip(spool);
	if (to >= 0) {
		keep_last(to);
		close(to);
	}
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
	int fd;

	if (spool->lock_fd >= 0)
		return true;
	fd = openat(spool->folder_fd, "lock", O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, MODE);
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

/* Opens the folder of our own, or makes it. 0 or -errno. */
static int open_own(struct spool *spool)
{
	struct folder folder;
	int err = folder_open(&folder, NULL, spool->path, FOLDER_OWN | FOLDER_MAKE, 0755);

	if (err)
		return err;
	spool->folder_fd = openat(folder.fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	err = spool->folder_fd < 0 ? -errno : 0;
	folder_close(&folder);
	if (!err && fchmod(spool->folder_fd, 0700))
		err = -errno;
	return err;
}

static int open_state(struct spool *spool)
{
	if (mkdirat(spool->folder_fd, SPOOL_STATE, 0700) && errno != EEXIST)
		return -errno;
	spool->state_fd =
	    openat(spool->folder_fd, SPOOL_STATE, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	return spool->state_fd < 0 ? -errno : file_check_folder(spool->state_fd);
}

static void close_folders(struct spool *spool)
{
	if (spool->state_fd >= 0)
		close(spool->state_fd);
	if (spool->folder_fd >= 0)
		close(spool->folder_fd);
	spool->folder_fd = spool->state_fd = -1;
}

/* And again should it be removed in between. */
static int open_folders(struct spool *spool)
{
	struct stat st;

	for (;;) {
		int err = open_own(spool);
		bool removed;

		if (err)
			return err;
		err = open_state(spool);
		removed = !flock(spool->folder_fd, LOCK_SH) && !fstat(spool->folder_fd, &st) && !st.st_nlink;
		if (!removed)
			return err;
		close_folders(spool);
	}
}

int spool_open(struct spool *spool, const char *path, uint64_t budget_bytes)
{
	int err;

	*spool = (struct spool){.folder_fd = -1, .state_fd = -1, .lock_fd = -1, .budget_bytes = budget_bytes};
	if (strlen(path) >= sizeof(spool->path))
		return -ENAMETOOLONG;
	strcpy(spool->path, path);
	err = open_folders(spool);
	if (err)
		return err;
	spool_lock(spool);
	return spool_scan(spool);
}

void spool_close(struct spool *spool)
{
	if (spool->lock_fd >= 0)
		close(spool->lock_fd);
	close_folders(spool);
	free(spool->entries);
	spool->entries = NULL;
	spool->count = 0;
	spool->lock_fd = -1;
}
