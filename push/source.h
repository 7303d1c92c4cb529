/* SPDX-License-Identifier: Apache-2.0 */
/* Where profiles come from: folders that are watched, or paths that `heaptap record` writes into a pipe. */
#ifndef PUSH_SOURCE_H
#define PUSH_SOURCE_H

#include <poll.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct target_queue;

enum { SOURCE_FDS_MAX = 2 };

struct source;

/* folders ends with NULL. paths_fd is COMMAND_LINE_NO_FD, or a pipe that is closed with the source. NULL if
 * there is no memory. */
struct source *source_new(char *const *folders, int paths_fd);
void source_free(struct source *source);

/* Fills in what to wait for. Returns the number of descriptors. */
size_t source_fds(const struct source *source, struct pollfd fds[SOURCE_FDS_MAX]);

/* Nanoseconds until source_read() has something to do without a descriptor being ready. */
uint64_t source_due_ns(const struct source *source);

/* Offers new files to all queues. Returns after a tenth of a second, or after one file if that takes longer,
 * so that requests under way do not reach their time limit. fds: of source_fds(), after the wait. */
void source_read(
    struct source *source, const struct pollfd *fds, struct target_queue *queues, size_t queue_count);

/* Was the last path read? */
bool source_has_ended(const struct source *source);

/*
 * ---- source_watch.c: files that appear below some folders
 *
 * inotify tells of files. Scans find what inotify does not tell: another machine's writes, and what came
 * while its queue was full. A file appears when it is renamed or linked into place, or closed by who wrote
 * it.
 */
enum { WATCH_DEPTH = 4 /* folders below the given one: the daemon's store has two */ };

struct watch_file {
	char *path;
	int64_t written_ns; /* st_mtim, since 1970 */
	uint64_t version;   /* another one whenever the file is another or has other contents */
};

struct watch; /* borrows the folders' names */

struct watch *watch_new(char *const *folders, size_t count);
void watch_free(struct watch *watch);

/* Readable when something has happened; -1 if the kernel has no inotify for us, and only scans find files. */
int watch_fd(const struct watch *watch);

/*
 * All files below the folders, oldest first, so that the profiles of a process come in their order. Hidden
 * files and what is no regular file are left out. The caller frees them. 0, -ENOMEM; a folder that cannot
 * be read is named on stderr, once.
 */
int watch_scan(struct watch *watch, struct watch_file **files, size_t *count);

/* Those that inotify tells of, in the order of what happened. 0, -ENOMEM; -EAGAIN: a scan is due. */
int watch_read(struct watch *watch, struct watch_file **files, size_t *count);

void watch_files_free(struct watch_file *files, size_t count);

#endif
