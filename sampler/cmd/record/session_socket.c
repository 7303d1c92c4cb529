/* SPDX-License-Identifier: Apache-2.0 */
#include "sampler/cmd/record/session_socket.h"

#include "pprof/codec/folder.h"
#include "sampler/core/control_peer.h"

#include <errno.h>
#include <stdio.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

/* Opens the first folder that is our own, or makes it. Returns its descriptor. */
static int find_folder(char folder[CONTROL_FOLDER_BYTES])
{
	char folders[CONTROL_FOLDERS][CONTROL_FOLDER_BYTES];
	size_t count = control_folders(folders, geteuid());

	for (size_t i = 0; i < count; i++) {
		struct folder own;

		if (folder_open(&own, NULL, folders[i], FOLDER_OWN | FOLDER_MAKE_LAST, 0700))
			continue;
		folder_close(&own);
		int fd =
		    control_folder_open(folders[i], geteuid()); /* fails for a link: clients follow none */
		if (fd < 0)
			continue;
		snprintf(folder, CONTROL_FOLDER_BYTES, "%s", folders[i]);
		return fd;
	}
	return -EACCES;
}

/* Returns a listening descriptor, or -errno. The socket has another name until it listens: a client that
 * finds one that does not listen takes its sampler for killed, and removes it. */
static int bind_in_folder(struct session_socket *own)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	char early[sizeof(own->name)];
	int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

	if (fd < 0)
		return -EMFILE;
	snprintf(own->name, sizeof(own->name), "%d.sock", (int)getpid());
	snprintf(early, sizeof(early), ".%d.new", (int)getpid());
	snprintf(address.sun_path, sizeof(address.sun_path), "/proc/self/fd/%d/%s", own->folder_fd, early);
	(void)unlinkat(own->folder_fd, early, 0); /* a sampler that was killed may have had our pid */
	if (bind(fd, (const struct sockaddr *)&address, sizeof(address)) == 0 && listen(fd, 8) == 0 &&
	    renameat(own->folder_fd, early, own->folder_fd, own->name) == 0)
		return fd;
	int error = -errno;
	(void)unlinkat(own->folder_fd, early, 0);
	close(fd);
	return error;
}

int session_socket_open(struct session_socket *own)
{
	own->name[0] = '\0';
	own->folder_fd = find_folder(own->folder);
	return own->folder_fd < 0 ? own->folder_fd : bind_in_folder(own);
}

void session_socket_close(struct session_socket *own)
{
	if (own->folder_fd >= 0 && own->name[0])
		unlinkat(own->folder_fd, own->name, 0);
	if (own->folder_fd >= 0)
		close(own->folder_fd);
	own->folder_fd = -1;
}
