/* SPDX-License-Identifier: Apache-2.0 */
#include "sampler/session/control.h"

#include "sampler/linux/epoll_set.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

struct client {
	int fd;      /* -1: free */
	uint64_t id; /* number of this client, never 0 */
	uint32_t outstanding;
};

struct control {
	int fd, epoll_fd;
	int folder_fd;
	char name[32];                 /* of the socket in the folder; empty: not bound */
	char working_folder[PATH_MAX]; /* to make relative paths of profiles absolute */
	struct client clients[CONTROL_CLIENTS];
	uint64_t next_id;
	uint32_t (*ask)(void *context, pid_t pid, uint64_t asker);
	void *context;
};

size_t control_folders(char folders[CONTROL_FOLDERS][CONTROL_FOLDER_BYTES], uid_t uid)
{
	const char *runtime = getenv("XDG_RUNTIME_DIR");
	size_t count = 0;
	if (runtime && runtime[0] == '/' && strlen(runtime) < CONTROL_FOLDER_BYTES - 16)
		snprintf(folders[count++], CONTROL_FOLDER_BYTES, "%s/heaptap", runtime);
	snprintf(folders[count++], CONTROL_FOLDER_BYTES, "/tmp/heaptap-%u", (unsigned int)uid);
	snprintf(folders[count++], CONTROL_FOLDER_BYTES, "/run/user/%u/heaptap", (unsigned int)uid);
	return count;
}

int control_folder_open(const char *folder, uid_t owner)
{
	struct stat status;
	int fd = open(folder, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0)
		return errno == ELOOP ? -ENOTDIR : -errno;
	if (fstat(fd, &status) == 0 && status.st_uid == owner && (status.st_mode & 022) == 0)
		return fd;
	close(fd);
	return -EPERM;
}

/* Opens the first folder that only we may write, or makes it. Returns its descriptor. */
static int find_folder(void)
{
	char folders[CONTROL_FOLDERS][CONTROL_FOLDER_BYTES];
	size_t count = control_folders(folders, geteuid());
	for (size_t i = 0; i < count; i++) {
		mkdir(folders[i], 0700);
		int fd = control_folder_open(folders[i], geteuid());
		if (fd >= 0)
			return fd;
	}
	return -EACCES;
}

struct control *control_open(
    int epoll_fd, uint32_t (*ask)(void *context, pid_t pid, uint64_t asker), void *context, int *error)
{
	struct control *control = calloc(1, sizeof(*control));
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	*error = -ENOMEM;
	if (!control)
		return NULL;
	control->epoll_fd = epoll_fd;
	control->folder_fd = -1;
	control->ask = ask;
	control->context = context;
	for (size_t i = 0; i < CONTROL_CLIENTS; i++)
		control->clients[i].fd = -1;
	if (!getcwd(control->working_folder, sizeof(control->working_folder)))
		control->working_folder[0] = '\0';
	control->fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	control->folder_fd = find_folder();
	*error = control->fd < 0 ? -EMFILE : control->folder_fd < 0 ? control->folder_fd : 0;
	if (*error)
		goto fail;
	snprintf(control->name, sizeof(control->name), "%d.sock", (int)getpid());
	snprintf(address.sun_path, sizeof(address.sun_path), "/proc/self/fd/%d/%s", control->folder_fd,
	    control->name);
	unlinkat(control->folder_fd, control->name, 0); /* of a killed sampler that had our pid */
	if (bind(control->fd, (const struct sockaddr *)&address, sizeof(address)) != 0 ||
	    listen(control->fd, 8) != 0)
		*error = -errno;
	else
		*error = epoll_set_add(control->epoll_fd, control->fd);
	if (!*error)
		return control;
fail:
	control_close(control);
	return NULL;
}

/* Children that write snapshots have copies of its descriptor, so only shutdown() is an end of file to it. */
static void drop(const struct control *control, struct client *client)
{
	(void)shutdown(client->fd, SHUT_RDWR);
	epoll_set_close(control->epoll_fd, client->fd);
	client->fd = -1;
}

void control_close(struct control *control)
{
	if (!control)
		return;
	for (size_t i = 0; i < CONTROL_CLIENTS; i++)
		if (control->clients[i].fd >= 0)
			drop(control, &control->clients[i]);
	if (control->fd >= 0)
		epoll_set_close(control->epoll_fd, control->fd);
	if (control->name[0])
		unlinkat(control->folder_fd, control->name, 0);
	if (control->folder_fd >= 0)
		close(control->folder_fd);
	free(control);
}

static void say(const struct control *control, struct client *client, const char *text)
{
	if (client->fd >= 0 && send(client->fd, text, strlen(text), MSG_NOSIGNAL | MSG_DONTWAIT) < 0)
		drop(control, client);
}

static bool may_ask(int fd)
{
	struct ucred peer;
	socklen_t length = sizeof(peer);
	return getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &length) == 0 &&
	    (peer.uid == geteuid() || peer.uid == 0);
}

static void take_client(struct control *control)
{
	int fd = accept4(control->fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
	struct client *client = NULL;
	if (fd < 0)
		return;
	for (size_t i = 0; i < CONTROL_CLIENTS && !client; i++)
		if (control->clients[i].fd < 0)
			client = &control->clients[i];
	bool allowed = may_ask(fd);
	if (allowed && !client)
		(void)send(fd, "busy", 4, MSG_NOSIGNAL | MSG_DONTWAIT);
	if (!allowed || !client || epoll_set_add(control->epoll_fd, fd) != 0) {
		(void)shutdown(fd, SHUT_RDWR);
		close(fd);
		return;
	}
	*client = (struct client){.fd = fd, .id = ++control->next_id};
}

static void take_request(struct control *control, struct client *client)
{
	char text[64];
	ssize_t got = recv(client->fd, text, sizeof(text) - 1, 0);
	if (got < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	if (got <= 0 || client->outstanding) {
		drop(control, client);
		return;
	}
	text[got] = '\0';
	char *end, *word = strncmp(text, "snapshot ", 9) == 0 ? text + 9 : NULL;
	bool session = word && strncmp(word, "session ", 8) == 0, all = word && strcmp(word, "all") == 0;
	if (session)
		word += 8;
	long pid = word && !all ? strtol(word, &end, 10) : 0;
	if (!word || pid < 0 || pid > INT_MAX || (pid == 0 && !all) || (pid > 0 && *end)) {
		drop(control, client);
		return;
	}
	if (session)
		pid = -pid;
	char reply[32];
	client->outstanding = control->ask(control->context, (pid_t)pid, client->id);
	snprintf(reply, sizeof(reply), "asked %u", client->outstanding);
	say(control, client, client->outstanding ? reply : "unknown");
	if (client->fd >= 0 && !client->outstanding)
		drop(control, client);
}

bool control_event(struct control *control, int fd)
{
	if (!control)
		return false;
	if (fd == control->fd) {
		take_client(control);
		return true;
	}
	for (size_t i = 0; i < CONTROL_CLIENTS; i++)
		if (control->clients[i].fd == fd) {
			take_request(control, &control->clients[i]);
			return true;
		}
	return false;
}

void control_answer(struct control *control, uint64_t asker, pid_t pid, const char *path, int error)
{
	char text[CONTROL_MESSAGE_BYTES];
	for (size_t i = 0; control && i < CONTROL_CLIENTS; i++) {
		struct client *client = &control->clients[i];
		if (client->fd < 0 || client->id != asker)
			continue;
		if (error)
			snprintf(text, sizeof(text), "failed %d %s", (int)pid, strerror(-error));
		else if (path[0] == '/' || !control->working_folder[0])
			snprintf(text, sizeof(text), "written %d %s", (int)pid, path);
		else
			snprintf(
			    text, sizeof(text), "written %d %s/%s", (int)pid, control->working_folder, path);
		say(control, client, text);
		if (client->fd >= 0 && --client->outstanding == 0)
			drop(control, client);
	}
}
