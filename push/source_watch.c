/* SPDX-License-Identifier: Apache-2.0 */
/* The part of a source that watches folders. */
#include "push/source.h"

#include "pprof/analysis/stack_key.h"
#include "pprof/table/array.h"
#include "pprof/text/log_line.h"

#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/inotify.h>
#include <sys/stat.h>
#include <unistd.h>

enum { EVENTS = IN_MOVED_TO | IN_CLOSE_WRITE | IN_CREATE | IN_ONLYDIR | IN_EXCL_UNLINK };

struct watched {
	int number; /* inotify's */
	char *path;
};

struct watch {
	char *const *folders;
	size_t folder_count;
	int fd;
	struct watched *watched;
	size_t count, room;
	bool complained;
};

struct files {
	struct watch_file *at;
	size_t count, room;
};

struct watch *watch_new(char *const *folders, size_t count)
{
	struct watch *watch = calloc(1, sizeof(*watch));

	if (!watch)
		return NULL;
	watch->folders = folders;
	watch->folder_count = count;
	watch->fd = inotify_init1(IN_CLOEXEC | IN_NONBLOCK);
	return watch;
}

void watch_free(struct watch *watch)
{
	if (!watch)
		return;
	for (size_t i = 0; i < watch->count; i++)
		free(watch->watched[i].path);
	free(watch->watched);
	if (watch->fd >= 0)
		close(watch->fd);
	free(watch);
}

int watch_fd(const struct watch *watch)
{
	return watch->fd;
}

void watch_files_free(struct watch_file *files, size_t count)
{
	for (size_t i = 0; i < count; i++)
		free(files[i].path);
	free(files);
}

/* 0, or -errno if there is no such regular file. */
static int look(const char *path, struct watch_file *file)
{
	struct stat st;
	uint64_t parts[5];

	if (lstat(path, &st))
		return -errno;
	if (!S_ISREG(st.st_mode))
		return -EINVAL;
	parts[0] = st.st_dev;
	parts[1] = st.st_ino;
	parts[2] = (uint64_t)st.st_mtim.tv_sec;
	parts[3] = (uint64_t)st.st_mtim.tv_nsec;
	parts[4] = (uint64_t)st.st_size;
	file->version = stack_key_mix(0, parts, sizeof(parts));
	file->written_ns = (int64_t)st.st_mtim.tv_sec * 1000000000 + st.st_mtim.tv_nsec;
	file->path = strdup(path);
	return file->path ? 0 : -ENOMEM;
}

static int add_file(struct files *files, const char *path)
{
	struct watch_file file;
	int err = look(path, &file);

	if (err)
		return err == -ENOMEM ? err : 0;
	err = array_reserve(&files->at, &files->room, files->count + 1, sizeof(file));
	if (err)
		free(file.path);
	else
		files->at[files->count++] = file;
	return err;
}

/* inotify gives one number per folder, also if it is added again. */
static void watch_folder(struct watch *watch, const char *path)
{
	int number = watch->fd >= 0 ? inotify_add_watch(watch->fd, path, EVENTS) : -1;
	size_t i = 0;

	if (number < 0)
		return;
	while (i < watch->count && watch->watched[i].number != number)
		i++;
	if (i < watch->count || array_reserve(&watch->watched, &watch->room, i + 1, sizeof(*watch->watched)))
		return;
	watch->watched[i] = (struct watched){number, strdup(path)};
	if (watch->watched[i].path)
		watch->count++;
}

static int scan_folder(struct watch *watch, const char *path, int depth, struct files *files)
{
	char below[PATH_MAX];
	struct dirent *found;
	DIR *folder;
	int err = 0;

	/* Watched before it is read: what comes in between is found twice, not never. */
	watch_folder(watch, path);
	folder = opendir(path);
	if (!folder)
		return errno == ENOMEM ? -ENOMEM : -ENOENT;
	while (!err && (found = readdir(folder))) {
		struct stat st;

		if (*found->d_name == '.' ||
		    (size_t)snprintf(below, sizeof(below), "%s/%s", path, found->d_name) >= sizeof(below) ||
		    lstat(below, &st))
			continue;
		if (S_ISDIR(st.st_mode) && depth < WATCH_DEPTH)
			err = scan_folder(watch, below, depth + 1, files);
		else if (S_ISREG(st.st_mode))
			err = add_file(files, below);
		err = err == -ENOENT ? 0 : err;
	}
	closedir(folder);
	return err;
}

static int compare_files(const void *a, const void *b)
{
	const struct watch_file *x = a, *y = b;

	if (x->written_ns != y->written_ns)
		return x->written_ns < y->written_ns ? -1 : 1;
	return strcmp(x->path, y->path);
}

int watch_scan(struct watch *watch, struct watch_file **found, size_t *count)
{
	struct files files = {0};
	bool missing = false;
	int err = 0;

	for (size_t i = 0; i < watch->folder_count && err != -ENOMEM; i++) {
		err = scan_folder(watch, watch->folders[i], 0, &files);
		if (err && !watch->complained)
			log_line("cannot read the folder %s: %s; it is tried again", watch->folders[i],
			    strerror(-err));
		missing = missing || err;
	}
	watch->complained = missing;
	if (err == -ENOMEM) {
		watch_files_free(files.at, files.count);
		return err;
	}
	if (files.count)
		qsort(files.at, files.count, sizeof(*files.at), compare_files);
	*found = files.at;
	*count = files.count;
	return 0;
}

static const char *path_of(const struct watch *watch, int number)
{
	for (size_t i = 0; i < watch->count; i++)
		if (watch->watched[i].number == number)
			return watch->watched[i].path;
	return NULL;
}

static void forget(struct watch *watch, int number)
{
	for (size_t i = 0; i < watch->count; i++) {
		if (watch->watched[i].number != number)
			continue;
		free(watch->watched[i].path);
		watch->watched[i] = watch->watched[--watch->count];
		return;
	}
}

/* 0, -ENOMEM, or -EAGAIN for what only a scan can find. */
static int on_event(struct watch *watch, const struct inotify_event *event, struct files *files)
{
	const char *folder = path_of(watch, event->wd);
	char path[PATH_MAX];

	if (event->mask & IN_Q_OVERFLOW)
		return -EAGAIN;
	if (event->mask & IN_IGNORED) {
		forget(watch, event->wd);
		return 0;
	}
	if (!folder || !event->len || event->name[0] == '.' ||
	    (size_t)snprintf(path, sizeof(path), "%s/%s", folder, event->name) >= sizeof(path))
		return 0;
	if (event->mask & IN_ISDIR)
		return event->mask & (IN_CREATE | IN_MOVED_TO) ? -EAGAIN : 0;
	/* A file that was made and not renamed is complete when it is closed; a link is complete at
	 * once, but a scan finds it soon enough. */
	return event->mask & IN_CREATE ? 0 : add_file(files, path);
}

int watch_read(struct watch *watch, struct watch_file **found, size_t *count)
{
	char buffer[16384] __attribute__((aligned(8)));
	struct files files = {0};
	int err = 0;
	ssize_t got;

	while (err != -ENOMEM && (got = read(watch->fd, buffer, sizeof(buffer))) > 0) {
		for (ssize_t at = 0; at < got && err != -ENOMEM;) {
			const struct inotify_event *event = (const void *)(buffer + at);
			int one = on_event(watch, event, &files);

			err = one ? one : err;
			at += (ssize_t)(sizeof(*event) + event->len);
		}
	}
	if (err) {
		watch_files_free(files.at, files.count);
		return err;
	}
	*found = files.at;
	*count = files.count;
	return 0;
}
