/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Makes this process one of the target's: gives it the target's namespaces, root folder, user and group, and
 * nothing more. The target can look into a process that has its user (/proc/PID/root, cwd, ns, fd). So our
 * own namespaces and root folder must be left behind before that.
 *
 * For a process of one thread that has just executed heaptap, and is in no namespace of the target yet: its
 * memory holds no secrets, and belongs to our own user namespace.
 */
#ifndef SAMPLER_INJECT_TARGET_CONTEXT_H
#define SAMPLER_INJECT_TARGET_CONTEXT_H

#include <stdbool.h>
#include <sys/types.h>

enum { TARGET_NAMESPACES = 6 }; /* beside that of users */

struct target_context {
	uid_t user; /* as numbers of the target's user namespace */
	gid_t group;
	/* user_fd and fds: namespaces; -1 if ours is the same */
	int root_fd, user_fd, fds[TARGET_NAMESPACES];
	bool own_ids, own_root;   /* the same as ours */
	bool own_users, own_pids; /* these namespaces are the same as ours */
	bool without_groups;      /* drop our groups */
};

/* Looks up the target while /proc is still ours. Returns 0; -EPERM if the target's user has no number in its
 * user namespace; or -errno. */
int target_context_open(struct target_context *context, pid_t target);

/* Enters the namespaces. From here on, only those may look into this process who may look into the sampler.
 * The pid namespace takes effect for the next child. Returns 0, -EPERM if we may not enter, or -errno. */
int target_context_enter(struct target_context *context);

/* Takes the root folder, then user and group; gives up groups, capabilities and every way to regain them;
 * closes the descriptors of target_context_open. Returns 0, -EPERM if we may not leave our own root, or
 * -errno. */
int target_context_become(struct target_context *context);

#endif
