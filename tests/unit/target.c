/* SPDX-License-Identifier: Apache-2.0 */
/* What heap and events share of a process: its name, its maps, its end. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "pprof/text/clock.h"
#include "sampler/intake/target.h"
#include "sampler/intake/walk.h"

#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
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

/* A child that has mapped its program so often. */
static pid_t start_with_mappings(size_t count)
{
	int ready[2];
	char byte;

	assert_int_equal(pipe(ready), 0);
	pid_t child = fork();
	if (child == 0) {
		int fd = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);

		for (size_t i = 0; i < count; i++)
			if (mmap(NULL, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE, fd, 0) == MAP_FAILED)
				_exit(1);
		if (write(ready[1], "", 1) == 1)
			pause();
		_exit(0);
	}
	close(ready[1]);
	assert_int_equal(read(ready[0], &byte, 1), 1);
	close(ready[0]);
	return child;
}

struct readings {
	uint64_t count, cpu_ns, most_cpu_ns;
};

/* Samples whose stacks are in no map, as those of a program that makes code all the time. */
static struct readings walk_into_nowhere(struct target *target, bool maps_follow, uint64_t for_ns)
{
	static struct unwind_frame frames[UNWIND_FRAMES_MAX];
	const uint64_t end_ns = clock_now_ns() + for_ns;
	uint64_t outcomes[UNWIND_COUNTS] = {0}, stack[2] = {0};
	struct regs regs = {.pc = 64, .known = 1u << regs_arch_native()->sp};
	struct readings readings = {0};

	regs.r[regs_arch_native()->sp] = (uintptr_t)stack;
	while (clock_now_ns() < end_ns) {
		const uint64_t before_ns = target->reading.read_ns, begin_cpu_ns = clock_thread_cpu_ns();
		const struct walk_sample sample = {.regs = &regs,
		    .stack = stack,
		    .stack_bytes = sizeof(stack),
		    .stack_want = sizeof(stack),
		    .maps_follow = maps_follow,
		    .time_ns = clock_now_ns()};

		walk_take(target, &sample, frames, 0, outcomes, NULL);
		if (target->reading.read_ns == before_ns)
			continue;
		const uint64_t cpu_ns = clock_thread_cpu_ns() - begin_cpu_ns;
		readings.count++;
		readings.cpu_ns += cpu_ns;
		readings.most_cpu_ns = cpu_ns > readings.most_cpu_ns ? cpu_ns : readings.most_cpu_ns;
	}
	return readings;
}

static void many_mappings_take_their_share(void **state)
{
	enum { MAPPINGS = 5000 };
	struct modules *modules = modules_new(0);
	struct target target;
	pid_t child = start_with_mappings(MAPPINGS);

	(void)state;
	assert_true(target_init(&target, child, 1));
	target.readable = true;
	target.maps = maps_new(modules, child, true);
	assert_non_null(target.maps);
	const uint64_t begin_ns = clock_now_ns();
	assert_true(target_read_maps(&target, begin_ns, 0));
	assert_true(maps_count(target.maps) >= MAPPINGS);
	struct readings readings;
	do /* under the sanitizers, beside other work, the first one may come late */
		readings = walk_into_nowhere(&target, false, 1500 * (uint64_t)CLOCK_NS_PER_MS);
	while (!readings.count && clock_now_ns() - begin_ns < 60 * (uint64_t)CLOCK_NS_PER_S);
	const uint64_t elapsed_ns = clock_now_ns() - begin_ns;
	kill(child, SIGKILL);
	assert_int_equal(waitpid(child, NULL, 0), child);
	print_message("%d mappings were read %d times in %d ms: %d ms of CPU, at most %d each\n", MAPPINGS,
	    (int)readings.count, (int)(elapsed_ns / CLOCK_NS_PER_MS),
	    (int)(readings.cpu_ns / CLOCK_NS_PER_MS), (int)(readings.most_cpu_ns / CLOCK_NS_PER_MS));
	/* The last one may begin when nothing is left but a nanosecond. */
	assert_true(readings.count > 0);
	assert_true(readings.cpu_ns - readings.most_cpu_ns <=
	    (100 * (uint64_t)CLOCK_NS_PER_MS + elapsed_ns / 20) * 5 / 4);
	target_fini(&target);
	modules_free(modules);
}

static void what_was_spent_is_paid_with_time(void **state)
{
	const uint64_t s = CLOCK_NS_PER_S, ms = CLOCK_NS_PER_MS;
	struct modules *modules = modules_new(4);
	struct target target;

	(void)state;
	assert_true(target_init(&target, getpid(), 1));
	target.readable = true;
	target.maps = maps_new(modules, getpid(), true);
	assert_true(target_read_maps(&target, 10 * s, 0));
	assert_true(target_maps_allowed(&target, 10 * s)); /* few mappings: nobody notices */
	target.reading.work = (struct throttle){.left = -(int64_t)(200 * ms), .filled_ns = 10 * s};
	target_look_at_maps(&target, 14 * s);
	assert_int_equal(target.reading.read_ns, 10 * s);
	target_look_at_maps(&target, 14 * s + 20);
	assert_int_equal(target.reading.read_ns, 14 * s + 20);
	assert_true(target.reading.work.left <= 0 && target.reading.work.left > -(int64_t)(100 * ms));
	target_look_at_maps(&target, 100 * s);
	assert_in_range(target.reading.work.left, 1, 100 * ms - 1);
	target_fini(&target);
	modules_free(modules);
}

/* Also where the kernel's records tell of most mappings. */
static void who_has_spent_all_waits(void **state)
{
	struct modules *modules = modules_new(4);
	struct target target;

	(void)state;
	assert_true(target_init(&target, getpid(), 1));
	target.readable = true;
	target.maps = maps_new(modules, getpid(), true);
	for (int maps_follow = 0; maps_follow < 2; maps_follow++) {
		target.reading.retry_ns = 0;
		target.reading.work = (struct throttle){0};
		assert_true(walk_into_nowhere(&target, maps_follow, 50 * CLOCK_NS_PER_MS).count > 0);
		target.reading.retry_ns = 0;
		target.reading.work.left = -60 * (int64_t)CLOCK_NS_PER_S;
		assert_int_equal(walk_into_nowhere(&target, maps_follow, 50 * CLOCK_NS_PER_MS).count, 0);
	}
	target_fini(&target);
	modules_free(modules);
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
	unlink(path); /* of an earlier process */
	FILE *file = fopen(path, "w");
	return file && fputs("1000 20 jitted\n", file) > 0 ? fclose(file) : -1;
}

static void expect_map(const struct target *target, bool there)
{
	char text[64];
	int fd = perf_map_file_open(&target->generated.perf_map);

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

/* By a clock that is set to an hour later its start would be an hour later too. */
static void a_clock_that_is_set_makes_no_map_old(void **state)
{
	char path[64];
	struct target target = waiting_target();
	const struct timespec before[2] = {{time(NULL) - 3600, 0}, {time(NULL) - 3600, 0}};

	(void)state;
	assert_int_equal(write_map(target.pid, path), 0);
	assert_int_equal(utimensat(AT_FDCWD, path, before, 0), 0);
	target_note_perf_map(&target);
	expect_map(&target, false);
	target.generated.perf_map.since_unix_s -= 3600; /* as it was found before the clock was set */
	target_note_perf_map(&target);
	expect_map(&target, true);
	unlink(path);
	end(&target);
	target_fini(&target);
}

static void nobody_is_asked_whose_pid_was_not_checked(void **state)
{
	struct target target = waiting_target();

	(void)state;
	target.readable = false;
	target_note_perf_map(&target);
	assert_null(target.generated.perf_map.folder);
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
	    cmocka_unit_test(many_mappings_take_their_share),
	    cmocka_unit_test(what_was_spent_is_paid_with_time),
	    cmocka_unit_test(who_has_spent_all_waits),
	    cmocka_unit_test(the_end_is_seen_with_and_without_a_descriptor),
	    cmocka_unit_test(the_perf_map_is_found_after_the_end),
	    cmocka_unit_test(a_perf_map_is_kept_that_the_process_deletes),
	    cmocka_unit_test(a_clock_that_is_set_makes_no_map_old),
	    cmocka_unit_test(nobody_is_asked_whose_pid_was_not_checked),
	    cmocka_unit_test(perf_maps_take_few_descriptors),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
