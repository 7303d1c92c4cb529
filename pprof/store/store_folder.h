/* SPDX-License-Identifier: Apache-2.0 */
/* Makes the folders of a store with their modes and group, opens them without following links, and locks the
 * store while it changes. */
#ifndef PPROF_STORE_STORE_FOLDER_H
#define PPROF_STORE_STORE_FOLDER_H

#include <stdbool.h>
#include <sys/types.h>

enum { STORE_FOLDER_MODE = 0750, STORE_FOLDER_FILE_MODE = 0640 };

/* The group `heaptap` of /etc/group; -1 if there is none, or if we may not give files to it. */
gid_t store_folder_group(void);

struct store_lock {
	int root_fd; /* the store's own folder */
	int fd;      /* its file .lock */
};

/* Opens the store's own folder and locks the store. Whoever may open a file may lock it for ever: so the lock
 * is on a file that only its owner may open, and not on the folder, which the group may read. Unless made is
 * NULL, a missing folder is made with its parents, and *made is set. 0; -EWOULDBLOCK: still locked after
 * `wait_ms`; or -errno. After an error there is nothing to unlock. */
int store_folder_lock(
    struct store_lock *lock, const char *path, unsigned int wait_ms, gid_t group, bool *made);
void store_folder_unlock(struct store_lock *lock);

/* Opens a folder in another one. Unless made is NULL, a missing folder is made, and *made is set. Returns a
 * descriptor or -errno. */
int store_folder_open(int parent_fd, const char *name, gid_t group, bool *made);

#endif
