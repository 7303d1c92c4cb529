/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A target that wants root to work on a folder of root's: in a user and a mount namespace of its own it
 * covers /proc and /tmp, so that the library comes by a folder in /var/tmp, and mounts VICTIM over that
 * folder as soon as it appears. A process on each CPU waits for it.
 *
 *     attach_covers VICTIM    prints its pid and "ready"; until SIGTERM. 77: no such namespaces
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/inotify.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <unistd.h>

static const char place[] = "/var/tmp";

static int write_map(const char *name, const char *text)
{
	char path[64];

	snprintf(path, sizeof(path), "/proc/self/%s", name);
	const int fd = open(path, O_WRONLY | O_CLOEXEC);
	const int error = fd < 0 || write(fd, text, strlen(text)) < 0;
	close(fd);
	return error;
}

/* The victim is opened before what leads to it is covered. Returns a descriptor, or -1. */
static int enter(const char *victim)
{
	char users[32], groups[32];

	snprintf(users, sizeof(users), "0 %u 1", getuid());
	snprintf(groups, sizeof(groups), "0 %u 1", getgid());
	if (unshare(CLONE_NEWUSER | CLONE_NEWNS) != 0 || write_map("setgroups", "deny") ||
	    write_map("uid_map", users) || write_map("gid_map", groups))
		return -1;
	const int fd = open(victim, O_PATH | O_CLOEXEC);
	const int covered =
	    mount("none", "/tmp", "tmpfs", 0, NULL) == 0 && mount("none", "/proc", "tmpfs", 0, NULL) == 0;
	return covered ? fd : -1;
}

static void watch(int victim_fd, int cpu)
{
	char text[4096] __attribute__((aligned(8))), path[512];
	cpu_set_t here;

	CPU_ZERO(&here);
	CPU_SET(cpu, &here);
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	sched_setaffinity(0, sizeof(here), &here);
	const int fd = inotify_init1(IN_CLOEXEC);
	if (fd < 0 || inotify_add_watch(fd, place, IN_CREATE) < 0)
		_exit(77);
	int tree = open_tree(victim_fd, "", AT_EMPTY_PATH | OPEN_TREE_CLONE);
	for (;;) {
		const ssize_t length = read(fd, text, sizeof(text));

		for (ssize_t at = 0; at < length;) {
			const struct inotify_event *event = (const void *)(text + at);

			at += (ssize_t)(sizeof(*event) + event->len);
			if (!event->len || strncmp(event->name, ".heaptap-", 9) != 0)
				continue;
			snprintf(path, sizeof(path), "%s/%s", place, event->name);
			if (move_mount(tree, "", AT_FDCWD, path, MOVE_MOUNT_F_EMPTY_PATH) == 0)
				(void)!write(1, "covered\n", 8);
			close(tree);
			tree = open_tree(victim_fd, "", AT_EMPTY_PATH | OPEN_TREE_CLONE);
		}
	}
}

static void on_term(int number)
{
	_exit(number != SIGTERM);
}

int main(int argc, char *argv[])
{
	const long cpus = sysconf(_SC_NPROCESSORS_ONLN);

	setvbuf(stdout, NULL, _IONBF, 0);
	signal(SIGTERM, on_term);
	printf("pid %d\n", (int)getpid());
	const int victim_fd = argc == 2 ? enter(argv[1]) : -1;
	if (victim_fd < 0)
		return 77;
	for (int cpu = 0; cpu < cpus; cpu++)
		if (fork() == 0)
			watch(victim_fd, cpu);
	puts("ready");
	for (;;)
		pause();
}
