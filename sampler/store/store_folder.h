/* SPDX-License-Identifier: Apache-2.0 */
/* The folders of a store: made with their modes and group, opened without following links, locked while
 * they change. */
#ifndef SAMPLER_STORE_STORE_FOLDER_H
#define SAMPLER_STORE_STORE_FOLDER_H

#include <stdbool.h>
#include <sys/types.h>

enum { STORE_FOLDER_MODE = 0750, STORE_FOLDER_FILE_MODE = 0640 };

/* The group `heaptap` of /etc/group, if there is one and we may give files to it; else -1. */
gid_t store_folder_group(void);

struct store_lock {
	int root_fd; /* the store's own folder */
	int fd;      /* its file .lock */
};

/* Opens the store's own folder and locks it; -EWOULDBLOCK: it is still locked after `wait_ms`. Whoever may
 * open a file may lock it, and never give it back: so it is not the folder, which the group may read, but a
 * file that is its owner's alone. If the folder is missing it is made, with what leads to it, unless made
 * is NULL; then *made is set. -errno: there is nothing to unlock. */
int store_folder_lock(
    struct store_lock *lock, const char *path, unsigned int wait_ms, gid_t group, bool *made);
void store_folder_unlock(struct store_lock *lock);

/* Opens a folder in another one, and makes it if it is missing and made is not NULL: then *made is set.
 * -errno: of mkdir(2), where that is why it is missing. */
int store_folder_open(int parent_fd, const char *name, gid_t group, bool *made);

#endif
