/* SPDX-License-Identifier: Apache-2.0 */
#include "sampler/session/control.h"

#include "pprof/codec/folder.h"
#include "sampler/control/control_folder.h"
#include "sampler/control/control_peer.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

struct control {
	struct control_server *server;
	char folder[CONTROL_FOLDER_BYTES];
	int folder_fd;
	char name[32]; /* of the socket in the folder; empty: not bound */
};

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
		int fd = control_folder_open(folders[i], geteuid()); /* no link: clients follow none */
		if (fd < 0)
			continue;
		snprintf(folder, CONTROL_FOLDER_BYTES, "%s", folders[i]);
		return fd;
	}
	return -EACCES;
}

/* A listening socket, or -errno. Under another name first: who finds a socket that does not listen takes its
 * sampler for killed, and removes it. */
static int bind_in_folder(struct control *control)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	char early[sizeof(control->name)];
	int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

	if (fd < 0)
		return -EMFILE;
	snprintf(control->name, sizeof(control->name), "%d.sock", (int)getpid());
	snprintf(early, sizeof(early), ".%d.new", (int)getpid());
	snprintf(
	    address.sun_path, sizeof(address.sun_path), "/proc/self/fd/%d/%s", control->folder_fd, early);
	(void)unlinkat(control->folder_fd, early, 0); /* of a killed sampler that had our pid */
	if (bind(fd, (const struct sockaddr *)&address, sizeof(address)) == 0 && listen(fd, 8) == 0 &&
	    renameat(control->folder_fd, early, control->folder_fd, control->name) == 0)
		return fd;
	int error = -errno;
	(void)unlinkat(control->folder_fd, early, 0);
	close(fd);
	return error;
}

struct control *control_open(int epoll_fd, const struct control_handlers *handlers, int *error)
{
	struct control *control = calloc(1, sizeof(*control));

	*error = -ENOMEM;
	if (!control)
		return NULL;
	control->folder_fd = find_folder(control->folder);
	int fd = control->folder_fd < 0 ? control->folder_fd : bind_in_folder(control);
	*error = fd < 0 ? fd : 0;
	if (!*error)
		control->server = control_server_new(epoll_fd, fd, CONTROL_NO_GROUP, handlers, error);
	if (control->server)
		return control;
	control_close(control);
	return NULL;
}

void control_close(struct control *control)
{
	if (!control)
		return;
	control_server_free(control->server);
	if (control->name[0])
		unlinkat(control->folder_fd, control->name, 0);
	if (control->folder_fd >= 0)
		close(control->folder_fd);
	free(control);
}

struct control_server *control_server_of(struct control *control)
{
	return control ? control->server : NULL;
}

int control_file(const struct control *control, const char *word, char *path, size_t path_bytes)
{
	int length = snprintf(path, path_bytes, "%s/%d.%s", control->folder, (int)getpid(), word);

	return length < (int)path_bytes ? 0 : -ENAMETOOLONG;
}
