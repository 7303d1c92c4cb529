/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Files that appear below some folders: inotify, and scans for what it does not tell (another machine's
 * writes, an overflow). A file appears when it is renamed or linked into place, or closed by who wrote it.
 */
#ifndef PUSH_WATCH_H
#define PUSH_WATCH_H

#include <stddef.h>
#include <stdint.h>

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
