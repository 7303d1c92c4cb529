/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What makes a process one of a target's: its namespaces, its root folder, its user and group, and nothing
 * beyond them. Who has the target's user can be looked into by the target (/proc/PID/root, cwd, ns, fd), so
 * by then everything of ours must have been left behind, what the namespaces hold as well as the root folder.
 *
 * For a process of one thread that has executed heaptap anew, and is in no namespace of the target yet: its
 * memory holds nothing, and belongs to the user namespace that we come from.
 */
#ifndef SAMPLER_ATTACH_TARGET_CONTEXT_H
#define SAMPLER_ATTACH_TARGET_CONTEXT_H

#include <stdbool.h>
#include <sys/types.h>

enum { TARGET_NAMESPACES = 6 }; /* beside that of users */

struct target_context {
	uid_t user; /* as they are called in the target's user namespace */
	gid_t group;
	int root_fd, user_fd, fds[TARGET_NAMESPACES]; /* of namespaces: -1 where ours is the same */
	bool own_ids, own_root;                       /* the same as ours */
	bool own_users, own_pids;                     /* so are these namespaces */
	bool without_groups;                          /* ours are dropped */
};

/* Looks the target up, while /proc is still ours. Returns 0; -EPERM: its user has no number in its user
 * namespace; or -errno. */
int target_context_open(struct target_context *context, pid_t target);

/* From here on nobody but who may look into the sampler may look into this process. Returns 0; -EPERM: we may
 * not enter; or -errno. The pid namespace is that of the next child. */
int target_context_enter(struct target_context *context);

/* Takes the root folder, then user and group, and gives up groups, capabilities and the way to any; what
 * target_context_open has opened is closed. Returns 0; -EPERM: we may not leave our own root; or -errno. */
int target_context_become(struct target_context *context);

#endif
