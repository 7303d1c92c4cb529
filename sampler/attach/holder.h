/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The holder: a small process with the user, the group, the root folder and the namespaces of a target, that
 * holds two descriptors while the target opens them through /proc (the library, and the region). The kernel
 * lets a process open /proc/PID/fd/N of another only with the same user and no fewer capabilities; so it
 * cannot be the sampler. Who may open that may open its root folder, working folder, program and namespaces
 * as well: so these are the target's own, but for the program, a copy of heaptap in memory that is executed
 * with an empty environment before anything of the target is entered (target_context.h).
 */
#ifndef SAMPLER_ATTACH_HOLDER_H
#define SAMPLER_ATTACH_HOLDER_H

#include <stddef.h>
#include <sys/types.h>

/* The word that makes heaptap a holder; not for users. */
#define HOLDER_COMMAND "attach-holder"

enum { HANDED_PATH_BYTES = 96 };

/* How a target gets its library and its region: from a holder, or from a folder (library_folder.h). */
struct handed {
	int fd; /* its socket: it ends when this is closed. -1: none */
	pid_t child;
	/* in the target's view; the region's is a file or a socket (proto/region.h) */
	char library_path[HANDED_PATH_BYTES], region_path[HANDED_PATH_BYTES];
};

/* Starts the holder for a target, with copies of both descriptors, as ATTACH_LIBRARY_FD and ATTACH_REGION_FD.
 * Returns 0; -ENOENT: the target has no /proc in which it would find the holder; -EPERM: we may not enter its
 * namespaces or leave our root folder; -ETIMEDOUT: its root does not answer; -ECANCELED: cancel_fd became
 * readable; or -errno. */
int holder_start(struct handed *handed, pid_t target, int library_fd, int region_fd, int cancel_fd);

/* Reads the child's answer, all of it. Returns 0; -EIO: it has ended; -ETIMEDOUT; or -ECANCELED. */
int handed_await(const struct handed *handed, void *answer, size_t bytes, int cancel_fd);

/* Ends what holder_start or library_folder_start has started, within seconds. */
void handed_end(struct handed *handed);

/* The holder's own main. words: the target's PID. Returns the exit status. */
int holder_main(int count, char *words[]);

#endif
