/* SPDX-License-Identifier: Apache-2.0 */
/* Who is at the other end of a control socket, as the kernel noted it at connect(2) or listen(2). */
#ifndef SAMPLER_CONTROL_CONTROL_PEER_H
#define SAMPLER_CONTROL_CONTROL_PEER_H

#include <stdbool.h>
#include <sys/types.h>

#define CONTROL_NO_GROUP ((gid_t)-1)
#define CONTROL_NOBODY   ((uid_t)-1)

/* The group `heaptap`, or CONTROL_NO_GROUP if there is none here. */
gid_t control_peer_group(void);

/* Is it root, our own user, or of the group, be it one of its supplementary ones? */
bool control_peer_may(int fd, gid_t group);

/* Whose process serves the socket, or CONTROL_NOBODY. */
uid_t control_peer_user(int fd);

/* Root and our own user may say anything of any process. */
bool control_peer_is_trusted(uid_t user);

/* May that user say anything of the process? Others may only of processes that have their user now, as the
 * real or the effective one: not of a process that has ended. */
bool control_peer_may_speak(uid_t user, pid_t pid);

/* The folder /proc/PID of such a process, which stays that of no other; -EPERM: it is not his; or -errno. */
int control_peer_open_process(uid_t user, pid_t pid);

#endif
