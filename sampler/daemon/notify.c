/* SPDX-License-Identifier: Apache-2.0 */
#include "sampler/daemon/notify.h"

#include "sampler/linux/clock.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

enum { FIRST_STORED_FD = 3, STORED_MAX = 65536 };

static struct sockaddr_un manager;
static socklen_t manager_bytes; /* 0: none */
static int notify_fd = -1;
static uint64_t watchdog_ns;

/* $LISTEN_FDS descriptors from 3 on, with the names in $LISTEN_FDNAMES between colons. */
static int stored_count, stored_next;
static char *stored_names, *stored_name;

static bool is_for_us(const char *variable)
{
	const char *pid = getenv(variable);
	return !pid || strtol(pid, NULL, 10) == getpid();
}

static void find_manager(void)
{
	const char *path = getenv("NOTIFY_SOCKET");
	size_t length = path ? strlen(path) : 0;
	if (length < 2 || length >= sizeof(manager.sun_path) || (path[0] != '/' && path[0] != '@'))
		return;
	manager.sun_family = AF_UNIX;
	memcpy(manager.sun_path, path, length);
	if (path[0] == '@')
		manager.sun_path[0] = '\0';
	notify_fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (notify_fd >= 0)
		manager_bytes = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + length);
}

static void find_stored(void)
{
	const char *count = getenv("LISTEN_FDS"), *names = getenv("LISTEN_FDNAMES");
	long number = count ? strtol(count, NULL, 10) : 0;
	if (number <= 0 || number > STORED_MAX || !getenv("LISTEN_PID") || !is_for_us("LISTEN_PID"))
		return;
	stored_count = (int)number;
	stored_name = stored_names = strdup(names ? names : "");
	for (int i = 0; i < stored_count; i++)
		(void)fcntl(FIRST_STORED_FD + i, F_SETFD, FD_CLOEXEC);
}

void notify_open(void)
{
	static const char *const variables[] = {
	    "NOTIFY_SOCKET", "WATCHDOG_USEC", "WATCHDOG_PID", "LISTEN_FDS", "LISTEN_PID", "LISTEN_FDNAMES"};
	const char *usec = getenv("WATCHDOG_USEC");
	find_manager();
	find_stored();
	if (usec && is_for_us("WATCHDOG_PID"))
		watchdog_ns = strtoull(usec, NULL, 10) * 1000 / 2;
	for (size_t i = 0; i < sizeof(variables) / sizeof(variables[0]); i++)
		unsetenv(variables[i]);
}

/* fd -1: none goes with it. */
static void send_text(const char *text, int fd)
{
	union {
		struct cmsghdr header;
		char bytes[CMSG_SPACE(sizeof(int))];
	} control = {
	    .header = {.cmsg_level = SOL_SOCKET, .cmsg_type = SCM_RIGHTS, .cmsg_len = CMSG_LEN(sizeof(int))}};
	struct iovec data = {(void *)(uintptr_t)text, strlen(text)};
	struct msghdr message = {
	    .msg_name = &manager, .msg_namelen = manager_bytes, .msg_iov = &data, .msg_iovlen = 1};
	if (!manager_bytes)
		return;
	if (fd >= 0) {
		memcpy(CMSG_DATA(&control.header), &fd, sizeof(fd));
		message.msg_control = &control;
		message.msg_controllen = sizeof(control);
	}
	(void)sendmsg(notify_fd, &message, MSG_NOSIGNAL);
}

void notify_tell(const char *format, ...)
{
	char text[1024];
	va_list arguments;
	va_start(arguments, format);
	vsnprintf(text, sizeof(text), format, arguments);
	va_end(arguments);
	send_text(text, -1);
}

void notify_reloading(void)
{
	notify_tell("RELOADING=1\nMONOTONIC_USEC=%" PRIu64, clock_now_ns() / 1000);
}

uint64_t notify_watchdog_ns(void)
{
	return watchdog_ns;
}

void notify_store(const char *name, int fd)
{
	char text[128];
	snprintf(text, sizeof(text), "FDSTORE=1\nFDNAME=%s", name);
	send_text(text, fd);
}

void notify_forget(const char *name)
{
	notify_tell("FDSTOREREMOVE=1\nFDNAME=%s", name);
}

int notify_next_stored(const char **name)
{
	if (stored_next >= stored_count) {
		free(stored_names);
		stored_names = stored_name = NULL;
		return -1;
	}
	char *colon = strchr(stored_name, ':');
	*name = stored_name;
	stored_name = colon ? colon + 1 : stored_name + strlen(stored_name);
	if (colon)
		*colon = '\0';
	return FIRST_STORED_FD + stored_next++;
}
