/* SPDX-License-Identifier: Apache-2.0 */
/* What heap and events share of a process: its name, its maps, its end. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "sampler/target/target.h"

#include <dirent.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

static void maps_are_read_while_it_executes_our_program(void **state)
{
	struct modules *modules = modules_new(4);
	struct target target;

	(void)state;
	assert_true(target_init(&target, getpid(), 1));
	target.maps = maps_new(modules, getpid(), false);
	assert_non_null(target.maps);
	assert_false(target_read_maps(&target, 1000, 0)); /* nobody has checked the pid */
	target.readable = true;
	target.code_address = UINT64_MAX - 1; /* is mapped nowhere: another program's maps */
	assert_true(target_read_maps(&target, 1000, 0));
	assert_int_equal(maps_count(target.maps), 0);
	assert_false(target_read_maps(&target, 1010, 11));
	target.code_address = (uintptr_t)maps_are_read_while_it_executes_our_program;
	assert_true(target_read_maps(&target, 1011, 11));
	assert_non_null(maps_find(target.maps, target.code_address));
	target_fini(&target);
	modules_free(modules);
}

static void the_end_is_seen_with_and_without_a_descriptor(void **state)
{
	pid_t child = fork();
	struct target by_pidfd, by_pid;

	(void)state;
	if (child == 0) {
		pause();
		_exit(0);
	}
	assert_true(target_init(&by_pidfd, child, 0) && target_init(&by_pid, child, 0));
	by_pidfd.pidfd = (int)syscall(SYS_pidfd_open, child, 0);
	assert_true(by_pidfd.pidfd >= 0);
	assert_false(target_has_ended(&by_pidfd));
	assert_false(target_has_ended(&by_pid));
	kill(child, SIGKILL);
	assert_int_equal(waitpid(child, NULL, 0), child);
	assert_true(target_has_ended(&by_pidfd));
	assert_true(target_has_ended(&by_pid));
	target_fini(&by_pidfd);
	target_fini(&by_pid);
}

static size_t open_descriptors(void)
{
	size_t count = 0;
	DIR *folder = opendir("/proc/self/fd");
	assert_non_null(folder);
	while (readdir(folder))
		count++;
	closedir(folder);
	return count;
}

/* Of a process that waits. */
static struct target waiting_target(void)
{
	struct target target;
	pid_t child = fork();
	if (child == 0) {
		pause();
		_exit(0);
	}
	assert_true(target_init(&target, child, 0));
	target.pidfd = (int)syscall(SYS_pidfd_open, child, 0);
	target.readable = true;
	return target;
}

static void end(struct target *target)
{
	kill(target->pid, SIGKILL);
	assert_int_equal(waitpid(target->pid, NULL, 0), target->pid);
}

static int write_map(pid_t pid, char path[64])
{
	snprintf(path, 64, "/tmp/perf-%d.map", (int)pid);
	FILE *file = fopen(path, "w");
	return file && fputs("1000 20 jitted\n", file) > 0 ? fclose(file) : -1;
}

static void expect_map(const struct target *target, bool there)
{
	char text[64];
	int fd = perf_map_file_open(&target->perf_map);
	assert_int_equal(fd >= 0, there);
	if (!there)
		return;
	assert_int_equal(pread(fd, text, sizeof(text), 0), 15);
	close(fd);
}

static void the_perf_map_is_found_after_the_end(void **state)
{
	char path[64];
	struct target target = waiting_target();

	(void)state;
	expect_map(&target, false);
	target_note_perf_map(&target);
	expect_map(&target, false);
	assert_int_equal(write_map(target.pid, path), 0);
	end(&target);
	/* There is nothing to be seen any more, and what is known stays. */
	target_note_perf_map(&target);
	expect_map(&target, true);
	unlink(path);
	expect_map(&target, false);
	target_fini(&target);
}

static void a_perf_map_is_kept_that_the_process_deletes(void **state)
{
	char path[64];
	struct target target = waiting_target();

	(void)state;
	assert_int_equal(write_map(target.pid, path), 0);
	target_met_generated_code(&target, 5);
	unlink(path);
	target_met_generated_code(&target, 6);
	target_met_generated_code(&target, 3000000006);
	end(&target);
	expect_map(&target, true);
	target_fini(&target);
}

static void nobody_is_asked_whose_pid_was_not_checked(void **state)
{
	struct target target = waiting_target();

	(void)state;
	target.readable = false;
	target_note_perf_map(&target);
	assert_null(target.perf_map.folder);
	end(&target);
	target_fini(&target);
}

/* A crowd has one folder, and no more files are kept than are promised. */
static void perf_maps_take_few_descriptors(void **state)
{
	enum { CROWD = 200 };
	struct perf_map_file crowd[CROWD];
	char path[64];
	size_t before = open_descriptors();

	(void)state;
	for (size_t i = 0; i < CROWD; i++)
		assert_int_equal(perf_map_file_note(&crowd[i], getpid()), 0);
	assert_int_equal(open_descriptors(), before + 1);
	for (size_t i = 0; i < CROWD; i++)
		perf_map_file_forget(&crowd[i]);
	assert_int_equal(write_map(getpid(), path), 0);
	for (size_t i = 0; i < CROWD; i++)
		assert_int_equal(perf_map_file_note(&crowd[i], getpid()), 0);
	assert_int_equal(open_descriptors(), before + 1 + PERF_MAP_FILES_MAX);
	for (size_t i = 0; i < CROWD; i++) {
		int fd = perf_map_file_open(&crowd[i]);
		assert_true(fd >= 0);
		close(fd);
		perf_map_file_forget(&crowd[i]);
	}
	unlink(path);
	assert_int_equal(open_descriptors(), before);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(maps_are_read_while_it_executes_our_program),
	    cmocka_unit_test(the_end_is_seen_with_and_without_a_descriptor),
	    cmocka_unit_test(the_perf_map_is_found_after_the_end),
	    cmocka_unit_test(a_perf_map_is_kept_that_the_process_deletes),
	    cmocka_unit_test(nobody_is_asked_whose_pid_was_not_checked),
	    cmocka_unit_test(perf_maps_take_few_descriptors),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
