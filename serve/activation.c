/* SPDX-License-Identifier: Apache-2.0 */
#include "serve/activation.h"

#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

enum { FIRST_FD = 3 };

size_t activation_sockets(int *fds, struct listen_address *addresses, size_t room)
{
	const char *pid = getenv("LISTEN_PID"), *number = getenv("LISTEN_FDS");
	long said = pid && number && strtol(pid, NULL, 10) == (long)getpid() ? strtol(number, NULL, 10) : 0;
	size_t count = 0;

	for (int fd = FIRST_FD; fd < FIRST_FD + said && count < room; fd++) {
		if (listen_address_of(&addresses[count], fd))
			continue;
		fcntl(fd, F_SETFD, FD_CLOEXEC);
		fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) | O_NONBLOCK);
		fds[count++] = fd;
	}
	unsetenv("LISTEN_PID");
	unsetenv("LISTEN_FDS");
	return count;
}
