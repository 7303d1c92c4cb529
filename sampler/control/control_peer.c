/* SPDX-License-Identifier: Apache-2.0 */
#include "sampler/control/control_peer.h"

#include <grp.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#define GROUP_NAME "heaptap"

gid_t control_peer_group(void)
{
	const struct group *group = getgrnam(GROUP_NAME);
	return group ? group->gr_gid : CONTROL_NO_GROUP;
}

/* SO_PEERGROUPS (Linux 4.13); the kernel says how much room it takes. */
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
	if (peer.uid == 0 || peer.uid == geteuid())
		return true;
	return group != CONTROL_NO_GROUP && (peer.gid == group || has_group(fd, group));
}
