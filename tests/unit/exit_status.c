/* SPDX-License-Identifier: Apache-2.0 */
#include "sampler/linux/pidfd.h"

#include <errno.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

static void counters(void **state)
{
	uint64_t count = 99;

	(void)state;
	assert_int_equal(oom_watch_parse_counter("oom_kill_disable 0\nunder_oom 0\noom_kill 3\n", &count), 0);
	assert_int_equal(count, 3);
	assert_int_equal(
	    oom_watch_parse_counter("low 0\nhigh 0\nmax 8\noom 8\noom_kill 7\noom_group_kill 1\n", &count),
	    0);
	assert_int_equal(count, 7);
	assert_int_equal(
	    oom_watch_parse_counter("nr_free_pages 1\noom_kill 18446744073709551615", &count), 0);
	assert_true(count == UINT64_MAX);
	assert_int_equal(oom_watch_parse_counter("oom_kill_disable 5\n", &count), -ENOENT);
	assert_int_equal(oom_watch_parse_counter("", &count), -ENOENT);
	assert_int_equal(oom_watch_parse_counter("oom_kill x\n\n\n", &count), -ENOENT);
}

static void cgroups(void **state)
{
	static const struct {
		const char *text;
		int version;
		const char *path;
	} cases[] = {
	    {"0::/user.slice/x.scope\n", 2, "/user.slice/x.scope"},
	    {"12:pids:/a\n9:memory:/b/c\n0::/d\n", 1, "/b/c"},
	    {"0::/d\n9:memory:/b/c\n", 1, "/b/c"},
	    {"9:cpu,memory,blkio:/all\n", 1, "/all"},
	    {"4:memoryish:/no\n0::/yes:with:colons", 2, "/yes:with:colons"},
	    {"4:cpu:/no\n", 0, NULL},
	    {"", 0, NULL},
	    {"nonsense\n::\n", 0, NULL},
	};
	char path[64];
	int version;

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		assert_int_equal(oom_watch_parse_cgroup(cases[i].text, &version, path, sizeof(path)),
		    cases[i].version ? 0 : -ENOENT);
		assert_int_equal(version, cases[i].version);
		if (cases[i].version)
			assert_string_equal(path, cases[i].path);
	}
	/* a path that does not fit is not cut */
	assert_int_equal(oom_watch_parse_cgroup("0::/0123456789", &version, path, 8), -ENOENT);
}

static pid_t start(int status)
{
	pid_t pid = fork();

	if (pid == 0) {
		if (status > 128)
			kill(getpid(), status - 128);
		_exit(status);
	}
	assert_true(pid > 0);
	return pid;
}

static void wait_until_ended(pid_t pid)
{
	siginfo_t info;

	assert_int_equal(waitid(P_PID, (id_t)pid, &info, WEXITED | WNOWAIT), 0);
}

static void status_of_a_zombie_and_after(void **state)
{
	static const int statuses[] = {0, 5, 255, 128 + SIGKILL, 128 + SIGTERM};
	int status, reaped;

	(void)state;
	for (size_t i = 0; i < sizeof(statuses) / sizeof(statuses[0]); i++) {
		pid_t pid = start(statuses[i]);
		int pidfd = (int)syscall(SYS_pidfd_open, pid, 0);

		assert_true(pidfd >= 0);
		wait_until_ended(pid);
		assert_int_equal(pidfd_exit_status(pidfd, pid, &status), 0);
		assert_int_equal(waitpid(pid, &reaped, 0), pid);
		assert_int_equal(status, reaped);
		/* Linux 6.15 remembers; others say that they do not know. */
		status = -1;
		if (pidfd_exit_status(pidfd, pid, &status) == 0)
			assert_int_equal(status, reaped);
		close(pidfd);
	}
	assert_int_equal(pidfd_exit_status(-1, 1, &status), -ENODATA);
}

static void a_living_process_has_none(void **state)
{
	int status, pidfd = (int)syscall(SYS_pidfd_open, getpid(), 0);

	(void)state;
	assert_true(pidfd >= 0);
	assert_int_equal(pidfd_exit_status(pidfd, getpid(), &status), -ENODATA);
	close(pidfd);
}

static void a_watch_without_kills(void **state)
{
	struct oom_watch watch;

	(void)state;
	oom_watch_init(&watch);
	assert_int_equal(oom_watch_kills(&watch), -1);
	oom_watch_update(&watch, getpid());
	if (watch.fd < 0)
		skip(); /* no counter here */
	assert_int_equal(oom_watch_kills(&watch), 0);
	oom_watch_update(&watch, getpid());
	oom_watch_update(&watch, 0); /* a process that is gone: what is watched stays */
	assert_true(watch.fd >= 0);
	oom_watch_fini(&watch);
}

/* Between its end and the wait for it, its cgroup is still what the OOM killer has counted for. */
static void a_zombie_does_not_move(void **state)
{
	static const char hierarchy[] = "/sys/fs/cgroup/memory";
	char folder[64], path[96];
	struct oom_watch watch;
	int pipe_fds[2];
	char byte;

	(void)state;
	snprintf(folder, sizeof(folder), "%s/heaptap-unit.%d", hierarchy, (int)getpid());
	if (mkdir(folder, 0700) != 0) {
		print_message("no cgroup of version 1 can be made in %s\n", hierarchy);
		skip();
	}
	assert_int_equal(pipe(pipe_fds), 0);
	pid_t pid = fork();
	if (pid == 0) {
		close(pipe_fds[1]);
		_exit((int)read(pipe_fds[0], &byte, 1));
	}
	snprintf(path, sizeof(path), "%s/cgroup.procs", folder);
	FILE *processes = fopen(path, "w");
	const bool moved = processes && fprintf(processes, "%d\n", (int)pid) > 0 && fclose(processes) == 0;
	oom_watch_init(&watch);
	oom_watch_update(&watch, pid);
	close(pipe_fds[0]);
	close(pipe_fds[1]);
	wait_until_ended(pid);
	oom_watch_update(&watch, pid);
	assert_int_equal(waitpid(pid, NULL, 0), pid);
	const int64_t kills = oom_watch_kills(&watch);
	assert_int_equal(rmdir(folder), 0);
	assert_true(moved);
	assert_string_equal(watch.cgroup, strrchr(folder, '/'));
	assert_int_equal(kills, 0);
	oom_watch_fini(&watch);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(counters),
	    cmocka_unit_test(cgroups),
	    cmocka_unit_test(status_of_a_zombie_and_after),
	    cmocka_unit_test(a_living_process_has_none),
	    cmocka_unit_test(a_watch_without_kills),
	    cmocka_unit_test(a_zombie_does_not_move),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
