/* SPDX-License-Identifier: Apache-2.0 */
/* trust_front_full FRONT SAMPLER: fills the socket from the sampler to its front, which is stopped, with
 * messages that say nothing new; prints how many. Needs the right to trace the sampler. */
#define _GNU_SOURCE
#include "sampler/cmd/record/front_message.h"

#include <dirent.h>
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

/* The front has made it, as a pair. */
static bool is_of_front(int fd, pid_t front)
{
	struct ucred peer;
	int type;
	socklen_t peer_bytes = sizeof(peer), type_bytes = sizeof(type);

	return getsockopt(fd, SOL_SOCKET, SO_TYPE, &type, &type_bytes) == 0 && type == SOCK_SEQPACKET &&
	    getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &peer_bytes) == 0 && peer.pid == front;
}

int main(int argc, char *argv[])
{
	const struct front_message message = {.kind = FRONT_MESSAGE_ALIVE};
	char path[64];
	int sent = 0;

	if (argc != 3)
		return 2;
	snprintf(path, sizeof(path), "/proc/%s/fd", argv[2]);
	const int pidfd = (int)syscall(SYS_pidfd_open, atoi(argv[2]), 0);
	DIR *folder = opendir(path);
	const struct dirent *entry;
	while (folder && (entry = readdir(folder))) {
		int fd = (int)syscall(SYS_pidfd_getfd, pidfd, atoi(entry->d_name), 0);

		if (fd < 0 || !is_of_front(fd, atoi(argv[1])))
			continue;
		while (send(fd, &message, sizeof(message), MSG_DONTWAIT | MSG_NOSIGNAL) > 0)
			sent++;
		printf("%d\n", sent);
		return errno == EAGAIN && sent ? 0 : 3;
	}
	return 4;
}
