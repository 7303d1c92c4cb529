/* SPDX-License-Identifier: Apache-2.0 */
/* Messages for the service manager, in a network namespace of our own, where a socket's queue is long. */
#include "sampler/cmd/record/notify_relay.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

enum { QUEUE = 4 * NOTIFY_RELAY_AT_ONCE };

static socklen_t abstract(struct sockaddr_un *address, const char *name)
{
	*address = (struct sockaddr_un){.sun_family = AF_UNIX};
	strncpy(address->sun_path + 1, name + 1, sizeof(address->sun_path) - 2);
	return (socklen_t)(offsetof(struct sockaddr_un, sun_path) + strlen(name));
}

static void own_namespace(void)
{
	static const char length[] = "256";

	_Static_assert(QUEUE == 256, "as it is written");
	int fd = unshare(CLONE_NEWNET) == 0 ? open("/proc/sys/net/unix/max_dgram_qlen", O_WRONLY) : -1;
	if (fd < 0 || write(fd, length, strlen(length)) < 0) {
		print_message("skip: no network namespace can be made: %s\n", strerror(errno));
		skip();
	}
	close(fd);
}

static int count_readable(int fd)
{
	char text[64];
	int count = 0;

	while (recv(fd, text, sizeof(text), MSG_DONTWAIT) >= 0)
		count++;
	return count;
}

static size_t fill(const struct sockaddr_un *to, socklen_t bytes)
{
	size_t count = 0;
	int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

	assert_true(fd >= 0);
	while (sendto(fd, "WATCHDOG=1", 10, 0, (const struct sockaddr *)to, bytes) >= 0)
		count++;
	assert_int_equal(errno, EAGAIN);
	close(fd);
	return count;
}

/* However fast others write: the front has signals to read. */
static void who_writes_without_end_is_not_read_without_end(void **state)
{
	struct notify_relay relay;
	struct sockaddr_un address;

	(void)state;
	own_namespace();
	int manager = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	socklen_t bytes = abstract(&address, "@manager");
	assert_int_equal(bind(manager, (const struct sockaddr *)&address, bytes), 0);
	setenv("NOTIFY_SOCKET", "@manager", 1);
	notify_relay_open(&relay);
	assert_true(relay.fd >= 0);
	bytes = abstract(&address, relay.name);
	size_t sent = fill(&address, bytes);
	assert_true(sent > 2 * NOTIFY_RELAY_AT_ONCE);
	notify_relay_pass(&relay, getpid());
	assert_int_equal(count_readable(manager), NOTIFY_RELAY_AT_ONCE);
	struct pollfd more = {.fd = relay.fd, .events = POLLIN};
	assert_int_equal(poll(&more, 1, 0), 1);
	for (size_t left = sent - NOTIFY_RELAY_AT_ONCE; left;) {
		notify_relay_pass(&relay, getpid());
		left -= (size_t)count_readable(manager);
	}
	assert_int_equal(poll(&more, 1, 0), 0);
	/* A manager that does not read keeps it for one message's time, and not for each one's. */
	(void)fill(&address, bytes);
	for (int i = 0; i < QUEUE / NOTIFY_RELAY_AT_ONCE; i++)
		notify_relay_pass(&relay, getpid());
	(void)fill(&address, bytes);
	notify_relay_pass(&relay, getpid());
	assert_true(fill(&address, bytes) < 8);
	close(relay.fd);
	close(relay.manager_fd);
	close(manager);
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(who_writes_without_end_is_not_read_without_end)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
