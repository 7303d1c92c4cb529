/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The holder: a small process that holds the descriptors of the library and of the region, while the target
 * opens them through /proc. The kernel lets a process open /proc/PID/fd/N of another process only if it has
 * the same user and no fewer capabilities. So the sampler itself cannot be the holder, and the holder has the
 * target's user and group. A process that may open the holder's descriptors may also open its root folder,
 * working folder, program and namespaces. So these are the target's own, except the program: a copy of
 * heaptap in memory. It is executed with an empty environment before anything of the target is entered
 * (target_context.h).
 */
#ifndef SAMPLER_INJECT_HOLDER_H
#define SAMPLER_INJECT_HOLDER_H

#include <stddef.h>
#include <sys/types.h>

/* The command that makes heaptap a holder; not for users. */
#define HOLDER_COMMAND "attach-holder"

enum { HANDED_PATH_BYTES = 96 };

/* How a target gets its library and its region: from a holder, or from a folder (library_folder.h). */
struct handed {
	int fd; /* the child's socket: the child ends when this is closed; -1: none */
	pid_t child;
	/* as the target sees them; region_path is a file or a socket (proto/region.h) */
	char library_path[HANDED_PATH_BYTES], region_path[HANDED_PATH_BYTES];
};

/* Starts the holder for a target, with copies of the descriptors, as ATTACH_LIBRARY_FD, ATTACH_REGION_FD and
 * ATTACH_BUFFERS_FD.
 * Returns 0; -ENOENT if the target has no /proc in which it would find the holder; -EPERM if we may not enter
 * its namespaces or leave our root folder; -ETIMEDOUT if its root does not answer; -ECANCELED if cancel_fd
 * became readable; or -errno. */
struct region;
int holder_start(
    struct handed *handed, pid_t target, int library_fd, const struct region *region, int cancel_fd);

/* Reads the child's whole answer. Returns 0, -EIO if the child has ended, -ETIMEDOUT or -ECANCELED. */
int handed_await(const struct handed *handed, void *answer, size_t bytes, int cancel_fd);

/* Ends the child of holder_start or library_folder_start, within seconds. */
void handed_end(struct handed *handed);

/* The holder's main(). words: the target's PID. Returns the exit status. */
int holder_main(int count, char *words[]);

#endif
