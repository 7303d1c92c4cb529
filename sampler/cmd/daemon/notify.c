/* SPDX-License-Identifier: Apache-2.0 */
#include "sampler/cmd/daemon/notify.h"

#include "pprof/text/clock.h"

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

static struct sockaddr_un manager;
static socklen_t manager_bytes; /* 0: none */
static int notify_fd = -1;
static uint64_t watchdog_ns;

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

void notify_open(void)
{
	static const char *const variables[] = {"NOTIFY_SOCKET", "WATCHDOG_USEC", "WATCHDOG_PID"};
	const char *usec = getenv("WATCHDOG_USEC");

	find_manager();
	if (usec && is_for_us("WATCHDOG_PID"))
		watchdog_ns = strtoull(usec, NULL, 10) * 1000 / 2;
	for (size_t i = 0; i < sizeof(variables) / sizeof(variables[0]); i++)
		unsetenv(variables[i]);
}

void notify_tell(const char *format, ...)
{
	char text[1024];
	va_list arguments;

	if (!manager_bytes)
		return;
	va_start(arguments, format);
	vsnprintf(text, sizeof(text), format, arguments);
	va_end(arguments);
	(void)sendto(
	    notify_fd, text, strlen(text), MSG_NOSIGNAL, (const struct sockaddr *)&manager, manager_bytes);
}

void notify_reloading(void)
{
	notify_tell("RELOADING=1\nMONOTONIC_USEC=%" PRIu64, clock_now_ns() / 1000);
}

uint64_t notify_watchdog_ns(void)
{
	return watchdog_ns;
}
