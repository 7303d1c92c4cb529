/* SPDX-License-Identifier: Apache-2.0 */
/* Who is at the other end of a control socket, as the kernel noted it at connect(2) or listen(2). */
#ifndef SAMPLER_CORE_CONTROL_PEER_H
#define SAMPLER_CORE_CONTROL_PEER_H

#include <stdbool.h>
#include <sys/types.h>

#define CONTROL_NO_GROUP ((gid_t)-1)
#define CONTROL_NOBODY   ((uid_t)-1)

/* The group `heaptap`, or CONTROL_NO_GROUP if there is none here. */
gid_t control_peer_group(void);

/* Is the peer root, our own user, or in the group (also by a supplementary one)? */
bool control_peer_may(int fd, gid_t group);

/* The user whose process serves the socket, or CONTROL_NOBODY. */
uid_t control_peer_user(int fd);

/* Is the user root or our own? Then it is believed about any process. */
bool control_peer_is_trusted(uid_t user);

/* Is that user believed about the process? A user who is not trusted is believed only about processes that
 * run as this user now, by all its user ids; so not about a process that has ended. */
bool control_peer_may_speak(uid_t user, pid_t pid);

/* Opens /proc/PID of such a process; the descriptor never leads to another process. -EPERM: the user is
 * not believed about it; or -errno. */
int control_peer_open_process(uid_t user, pid_t pid);

#endif
