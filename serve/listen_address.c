/* SPDX-License-Identifier: Apache-2.0 */
#include "serve/listen_address.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

/* A full unix socket refuses connections at once. */
enum { BACKLOG = SOMAXCONN };

static bool is_loopback(const struct sockaddr_storage *socket)
{
	const struct sockaddr_in *v4 = (const struct sockaddr_in *)socket;
	const struct sockaddr_in6 *v6 = (const struct sockaddr_in6 *)socket;

	if (socket->ss_family == AF_INET)
		return ntohl(v4->sin_addr.s_addr) >> 24 == 127;
	if (socket->ss_family == AF_INET6)
		return IN6_IS_ADDR_LOOPBACK(&v6->sin6_addr) ||
		    (IN6_IS_ADDR_V4MAPPED(&v6->sin6_addr) && v6->sin6_addr.s6_addr[12] == 127);
	return socket->ss_family == AF_UNIX;
}

static int parse_unix(struct listen_address *address, const char *path)
{
	struct sockaddr_un *socket = (struct sockaddr_un *)&address->socket;

	if (!*path || strlen(path) >= sizeof(socket->sun_path))
		return -EINVAL;
	socket->sun_family = AF_UNIX;
	strcpy(socket->sun_path, path);
	address->length = sizeof(*socket);
	address->is_unix = true;
	return 0;
}

static int parse_host(struct listen_address *address, const char *host, bool bracketed, in_port_t port)
{
	struct sockaddr_in *v4 = (struct sockaddr_in *)&address->socket;
	struct sockaddr_in6 *v6 = (struct sockaddr_in6 *)&address->socket;

	if (bracketed) {
		v6->sin6_family = AF_INET6;
		v6->sin6_port = port;
		address->length = sizeof(*v6);
		return inet_pton(AF_INET6, host, &v6->sin6_addr) == 1 ? 0 : -EINVAL;
	}
	if (strcmp(host, "localhost") == 0)
		host = "127.0.0.1";
	v4->sin_family = AF_INET;
	v4->sin_port = port;
	address->length = sizeof(*v4);
	return inet_pton(AF_INET, *host ? host : "0.0.0.0", &v4->sin_addr) == 1 ? 0 : -EINVAL;
}

static int parse_inet(struct listen_address *address, const char *text)
{
	const char *colon = strrchr(text, ':');
	char host[INET6_ADDRSTRLEN + 1];
	bool bracketed;
	unsigned long port;
	char *end;

	if (!colon || colon[1] < '0' || colon[1] > '9')
		return -EINVAL;
	port = strtoul(colon + 1, &end, 10);
	if (*end || port > 65535)
		return -EINVAL;
	bracketed = text[0] == '[' && colon > text + 1 && colon[-1] == ']';
	if ((size_t)(colon - text) >= sizeof(host) ||
	    (!bracketed && memchr(text, ':', (size_t)(colon - text))))
		return -EINVAL;
	snprintf(host, sizeof(host), "%.*s", (int)(colon - text) - 2 * bracketed, text + bracketed);
	return parse_host(address, host, bracketed, htons((in_port_t)port));
}

int listen_address_parse(struct listen_address *address, const char *text, char *error, size_t error_bytes)
{
	int err;

	memset(address, 0, sizeof(*address));
	address->folder_fd = -1;
	err = strncmp(text, "unix:", 5) == 0 ? parse_unix(address, text + 5)
	    : *text == '/'                   ? parse_unix(address, text)
	                                     : parse_inet(address, text);
	address->is_local = is_loopback(&address->socket);
	if (err)
		snprintf(error, error_bytes,
		    "--listen %s: not ADDRESS:PORT (127.0.0.1:7337, [::1]:7337) nor unix:PATH", text);
	return err;
}

int listen_address_of(struct listen_address *address, int fd)
{
	memset(address, 0, sizeof(*address));
	address->folder_fd = -1;
	address->length = sizeof(address->socket);
	if (getsockname(fd, (struct sockaddr *)&address->socket, &address->length))
		return -errno;
	address->is_unix = address->socket.ss_family == AF_UNIX;
	address->is_local = is_loopback(&address->socket);
	return 0;
}

void listen_address_text(const struct listen_address *address, char text[LISTEN_ADDRESS_BYTES])
{
	const struct sockaddr_in *v4 = (const struct sockaddr_in *)&address->socket;
	const struct sockaddr_in6 *v6 = (const struct sockaddr_in6 *)&address->socket;
	char host[INET6_ADDRSTRLEN] = "?";

	if (address->is_unix) {
		snprintf(text, LISTEN_ADDRESS_BYTES, "unix:%s",
		    ((const struct sockaddr_un *)&address->socket)->sun_path);
	} else if (address->socket.ss_family == AF_INET6) {
		inet_ntop(AF_INET6, &v6->sin6_addr, host, sizeof(host));
		snprintf(text, LISTEN_ADDRESS_BYTES, "[%s]:%u", host, ntohs(v6->sin6_port));
	} else {
		inet_ntop(AF_INET, &v4->sin_addr, host, sizeof(host));
		snprintf(text, LISTEN_ADDRESS_BYTES, "%s:%u", host, ntohs(v4->sin_port));
	}
}

static const char *path_of(const struct listen_address *address)
{
	return ((const struct sockaddr_un *)&address->socket)->sun_path;
}

static const char *name_of(const struct listen_address *address)
{
	const char *slash = strrchr(path_of(address), '/');

	return slash ? slash + 1 : path_of(address);
}

/* The path goes by the descriptor of its folder, so nobody can lead us elsewhere by renaming folders. */
static struct sockaddr_un below_folder(const struct listen_address *address)
{
	struct sockaddr_un socket = {.sun_family = AF_UNIX};

	snprintf(socket.sun_path, sizeof(socket.sun_path), "/proc/self/fd/%d/%.*s", address->folder_fd,
	    (int)sizeof(socket.sun_path) - 32, name_of(address));
	return socket;
}

static bool is_ours(const struct listen_address *address)
{
	struct stat status;

	return fstatat(address->folder_fd, name_of(address), &status, AT_SYMLINK_NOFOLLOW) == 0 &&
	    S_ISSOCK(status.st_mode) && status.st_uid == geteuid();
}

void listen_address_remove(const struct listen_address *address)
{
	if (address->is_unix && address->folder_fd >= 0 && is_ours(address))
		unlinkat(address->folder_fd, name_of(address), 0);
}

static int open_folder(struct listen_address *address)
{
	char folder[sizeof(struct sockaddr_un)];
	const size_t length = (size_t)(name_of(address) - path_of(address));

	if (strlen(name_of(address)) > sizeof(((struct sockaddr_un *)0)->sun_path) - 33)
		return -ENAMETOOLONG;
	snprintf(folder, sizeof(folder), "%.*s", (int)length, path_of(address));
	address->folder_fd = open(length ? folder : ".", O_PATH | O_DIRECTORY | O_CLOEXEC);
	return address->folder_fd < 0 ? -errno : 0;
}

/* Removes the socket file of a server that was killed. */
static void remove_dead(const struct listen_address *address)
{
	const struct sockaddr_un path = below_folder(address);
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

	if (fd >= 0 && connect(fd, (const struct sockaddr *)&path, sizeof(path)) && errno == ECONNREFUSED)
		listen_address_remove(address);
	if (fd >= 0)
		close(fd);
}

/* The umask sets the mode before anybody can connect. */
static int bind_unix(int fd, struct listen_address *address)
{
	int err = open_folder(address);
	mode_t mask;

	if (err)
		return err;
	remove_dead(address);
	const struct sockaddr_un path = below_folder(address);
	mask = umask(0117);
	err = bind(fd, (const struct sockaddr *)&path, sizeof(path)) ? -errno : 0;
	umask(mask);
	return err;
}

int listen_address_open(struct listen_address *address)
{
	const int on = 1;
	int err = 0, fd;

	fd = socket(address->socket.ss_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd < 0)
		return -errno;
	if (address->socket.ss_family == AF_INET6)
		setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &on, sizeof(on));
	setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
	if (address->is_unix)
		err = bind_unix(fd, address);
	else if (bind(fd, (const struct sockaddr *)&address->socket, address->length))
		err = -errno;
	if (!err && listen(fd, BACKLOG))
		err = -errno;
	if (!err && !address->is_unix)
		err = listen_address_of(address, fd);
	if (!err)
		return fd;
	close(fd);
	return err;
}

enum { FIRST_FD = 3 };

size_t listen_address_activated(int *fds, struct listen_address *addresses, size_t room)
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
