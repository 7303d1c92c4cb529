/* SPDX-License-Identifier: Apache-2.0 */
#include "sampler/core/control_peer.h"

#include "sampler/linux/proc.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define GROUP_NAME "heaptap"

gid_t control_peer_group(void)
{
	const struct group *group = getgrnam(GROUP_NAME);

	return group ? group->gr_gid : CONTROL_NO_GROUP;
}

uid_t control_peer_user(int fd)
{
	struct ucred peer;
	socklen_t length = sizeof(peer);

	return getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &length) == 0 ? peer.uid : CONTROL_NOBODY;
}

bool control_peer_is_trusted(uid_t user)
{
	return user == 0 || user == geteuid();
}

/* By SO_PEERGROUPS (Linux 4.13). The kernel says how much room the groups take. */
static bool has_group(int fd, gid_t group)
{
	gid_t few[64], *groups = few;
	socklen_t bytes = sizeof(few);
	bool found = false;
	int failed = getsockopt(fd, SOL_SOCKET, SO_PEERGROUPS, few, &bytes);

	if (failed && bytes > sizeof(few)) {
		groups = malloc(bytes);
		failed = !groups || getsockopt(fd, SOL_SOCKET, SO_PEERGROUPS, groups, &bytes) != 0;
	}
	for (size_t i = 0; !failed && i < bytes / sizeof(gid_t); i++)
		found = found || groups[i] == group;
	if (groups != few)
		free(groups);
	return found;
}

bool control_peer_may(int fd, gid_t group)
{
	struct ucred peer;
	socklen_t length = sizeof(peer);

	if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &length) != 0)
		return false;
	if (control_peer_is_trusted(peer.uid))
		return true;
	return group != CONTROL_NO_GROUP && (peer.gid == group || has_group(fd, group));
}

/* Does the process run as this user, so that it can become no other user again? A service of root's that acts
 * for the user for a while has the user's number in some of its three ids. The kernel writes the ids in the
 * first lines of `status`, which no process can make long. */
static bool is_of(int process_fd, uid_t user)
{
	char status[1024];
	unsigned int real, effective, saved;
	int fd = openat(process_fd, "status", O_RDONLY | O_CLOEXEC);
	ssize_t length = fd < 0 ? -1 : read(fd, status, sizeof(status) - 1);

	if (fd >= 0)
		close(fd);
	status[length > 0 ? length : 0] = '\0';
	const char *line = strstr(status, "\nUid:");
	return line && sscanf(line, "\nUid: %u %u %u", &real, &effective, &saved) == 3 && real == user &&
	    effective == user && saved == user;
}

int control_peer_open_process(uid_t user, pid_t pid)
{
	char path[PROC_PATH_BYTES];
	int process_fd = open(proc_path(path, pid, ""), O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	if (process_fd < 0)
		return -errno;
	if (control_peer_is_trusted(user) || is_of(process_fd, user))
		return process_fd;
	close(process_fd);
	return -EPERM;
}

bool control_peer_may_speak(uid_t user, pid_t pid)
{
	if (control_peer_is_trusted(user))
		return true;
	int fd = control_peer_open_process(user, pid);
	if (fd >= 0)
		close(fd);
	return fd >= 0;
}
