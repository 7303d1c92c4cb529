/* SPDX-License-Identifier: Apache-2.0 */
/* How long an event was counted, of the time in which it could have been. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "sampler/linux/proc.h"
#include "sampler/perf/counters.h"

#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include <linux/perf_event.h>

enum { MS = 1000000 };

static int without_cpu = -1; /* this processor does not know cpu-clock; -1: all do, -2: none does */

static long opening_ns; /* what it takes to open one, beside a load */

/* No machine with two kinds of processors is at hand: the kernel's answer on one, its own otherwise. */
long syscall(long number, ...) /* NOLINT */
{
	static long (*real)(long, ...);
	va_list more;
	long a[5];

	va_start(more, number);
	for (int i = 0; i < 5; i++)
		a[i] = va_arg(more, long);
	va_end(more);
	if (number == SYS_perf_event_open) {
		const struct perf_event_attr *attr = (const struct perf_event_attr *)a[0]; /* NOLINT */

		if (attr->config == PERF_COUNT_SW_CPU_CLOCK &&
		    (without_cpu == -2 || (without_cpu >= 0 && (int)a[2] == without_cpu))) {
			errno = ENOENT;
			return -1;
		}
	}
	if (number == SYS_perf_event_open && opening_ns) {
		const struct timespec pause = {.tv_nsec = opening_ns};

		nanosleep(&pause, NULL);
	}
	if (!real)
		*(void **)&real = dlsym(RTLD_NEXT, "syscall");
	return real(number, a[0], a[1], a[2], a[3], a[4]);
}

static pid_t start_busy(void)
{
	pid_t pid = fork();

	assert_true(pid >= 0);
	if (pid == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		alarm(300);
		for (;;)
			__asm__ volatile("");
	}
	return pid;
}

static uint64_t cpu_ns(pid_t pid)
{
	struct timespec now;
	clockid_t clock;

	assert_int_equal(clock_getcpuclockid(pid, &clock), 0);
	assert_int_equal(clock_gettime(clock, &now), 0);
	return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

/* Until PID has run for MORE_NS; the test's own deadline ends it. */
static void run_for(pid_t pid, uint64_t more_ns)
{
	const struct timespec pause = {.tv_nsec = 2 * MS};
	uint64_t until = cpu_ns(pid) + more_ns;

	while (cpu_ns(pid) < until)
		nanosleep(&pause, NULL);
}

/* Attaching takes as long as the process needs for 50 ms: with hundreds of threads it does. */
static void drain_slowly(void *context)
{
	run_for(*(const pid_t *)context, 50 * MS);
}

static void read_stopped(const struct counters *c, pid_t pid, struct counter_totals *totals)
{
	int status;

	kill(pid, SIGSTOP);
	assert_int_equal(waitpid(pid, &status, WUNTRACED), pid);
	counters_read(c, 0, totals);
	kill(pid, SIGKILL);
	assert_int_equal(waitpid(pid, &status, 0), pid);
}

static struct counters *attach(struct event *event, pid_t pid)
{
	char text[256];
	int error;

	assert_int_equal(event_parse("cpu-clock", event, text, sizeof(text)), 0);
	return counters_open(event, 1, 4096, &error);
}

static void skip_without(struct counters *c, int error, pid_t pid)
{
	if (c && !error)
		return;
	print_message("SKIPPED: no events here\n");
	counters_close(c);
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
	skip();
}

static void attaching_is_no_multiplexing(void **state)
{
	pid_t pid = start_busy();
	struct event event;
	struct counters *c = attach(&event, pid);
	struct counter_totals totals;
	int error = c ? counters_attach_running(c, pid, drain_slowly, &pid) : 0;

	skip_without(c, error, pid);
	run_for(pid, 200 * MS);
	read_stopped(c, pid, &totals);
	assert_true(totals.running_ns >= 100 * MS);
	assert_in_range(totals.enabled_ns, 1, totals.running_ns);
	counters_close(c);
}

static bool is_refusal(int error)
{
	return error == -EPERM || error == -EACCES || error == -EMFILE;
}

/* On the first of all processors, then on the others. The event is counted on `counted` of them. */
static void run_on_all(struct counters *c, pid_t pid, uint32_t counted)
{
	int first = rings_cpu(counters_rings(c), 0);
	struct counter_totals totals;
	cpu_set_t others, one;

	sched_getaffinity(0, sizeof(others), &others);
	CPU_ZERO(&one);
	CPU_SET(first, &one);
	CPU_CLR(first, &others);
	if (CPU_COUNT(&others) == 0 || sched_setaffinity(pid, sizeof(one), &one) != 0)
		skip_without(c, -ENODEV, pid);
	run_for(pid, 100 * MS);
	assert_int_equal(sched_setaffinity(pid, sizeof(others), &others), 0);
	run_for(pid, 100 * MS);
	read_stopped(c, pid, &totals);
	assert_int_equal(totals.cpus, rings_count(counters_rings(c)));
	assert_int_equal(totals.cpus_counted, counted);
	assert_true(totals.running_ns > 0);
	assert_in_range(totals.enabled_ns, 1, totals.running_ns);
	counters_close(c);
}

static void one_processor_is_no_multiplexing(void **state)
{
	pid_t pid = start_busy();
	struct event event;
	struct counters *c = attach(&event, pid);

	skip_without(c, 0, pid);
	event.cpu = rings_cpu(counters_rings(c), 0);
	int error = counters_attach_running(c, pid, drain_slowly, &pid);
	skip_without(c, error, pid);
	run_on_all(c, pid, 1);
}

static void some_processors_do_not_know_it(void **state)
{
	pid_t pid = start_busy();
	struct event event;
	struct counters *c = attach(&event, pid);

	skip_without(c, 0, pid);
	without_cpu = rings_cpu(counters_rings(c), 0);
	int error = counters_attach_running(c, pid, drain_slowly, &pid);
	without_cpu = -1;
	if (rings_count(counters_rings(c)) > 1)
		assert_true(error == 0 || is_refusal(error));
	skip_without(c, error, pid);
	run_on_all(c, pid, (uint32_t)rings_count(counters_rings(c)) - 1);
}

static void none_knows_it(void **state)
{
	pid_t pid = start_busy();
	struct event event;
	struct counters *c = attach(&event, pid);

	skip_without(c, 0, pid);
	without_cpu = -2;
	int error = counters_attach_running(c, pid, drain_slowly, &pid);
	without_cpu = -1;
	if (is_refusal(error))
		skip_without(c, error, pid);
	assert_int_equal(error, -ENODEV);
	kill(pid, SIGKILL);
	assert_int_equal(waitpid(pid, NULL, 0), pid);
	counters_close(c);
}

/* ---- threads that come and go meanwhile */

static struct counters *churned;
static uint64_t drained_at_ns[2]; /* as all_threads counts: the last time, and the one before */
/* What is counted from their creation on. (Not the process' CPU time: of that the kernel takes off what the
 * hypervisor has taken, and of cpu-clock it does not.) */
static int all_threads = -1;

static uint64_t all_threads_ns(void)
{
	uint64_t ns;

	assert_int_equal(read(all_threads, &ns, sizeof(ns)), sizeof(ns));
	return ns;
}

/* Spins for a while, then creates its like and ends. */
static void *churn(void *unused)
{
	struct timespec start, now;
	pthread_attr_t attributes;
	pthread_t next;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &start);
	do
		clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
	while ((now.tv_sec - start.tv_sec) * 1000000000 + now.tv_nsec - start.tv_nsec < 5 * MS);
	pthread_attr_init(&attributes);
	pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
	while (pthread_create(&next, &attributes, churn, unused) != 0)
		;
	return NULL;
}

static pid_t start_churning(void)
{
	struct perf_event_attr attr = {.type = PERF_TYPE_SOFTWARE,
	    .size = sizeof(attr),
	    .config = PERF_COUNT_SW_CPU_CLOCK,
	    .inherit = 1,
	    .exclude_kernel = geteuid() != 0};
	int begin[2];

	assert_int_equal(pipe(begin), 0);
	pid_t pid = fork();
	assert_true(pid >= 0);
	if (pid == 0) {
		char byte;

		prctl(PR_SET_PDEATHSIG, SIGKILL);
		alarm(300);
		close(begin[1]);
		if (read(begin[0], &byte, 1) != 0)
			_exit(1);
		pthread_t thread[2];
		for (int i = 0; i < 2; i++)
			pthread_create(&thread[i], NULL, churn, NULL);
		for (;;)
			pause();
	}
	all_threads = (int)syscall(SYS_perf_event_open, &attr, pid, -1, -1, PERF_FLAG_FD_CLOEXEC);
	close(begin[0]);
	close(begin[1]);
	return pid;
}

static void note_record(void *unused, const struct record *record)
{
	if (record->kind == RECORD_FORK)
		counters_note_fork(churned, record);
}

static void drain_forks(void *unused)
{
	uint64_t bad = 0;

	rings_drain_events(
	    counters_rings(churned), counters_layouts(churned), UINT64_MAX, note_record, NULL, &bad);
	assert_int_equal(bad, 0);
}

static void drain_of_all(void *unused)
{
	drained_at_ns[1] = drained_at_ns[0];
	drained_at_ns[0] = all_threads_ns();
	drain_forks(unused);
}

/* Two threads at any time: who misses one counts half, and who counts one twice half too much. */
static void attach_to_churning(pid_t pid)
{
	struct counter_totals totals;
	struct event event;

	run_for(pid, 10 * MS);
	churned = attach(&event, pid);
	int error = churned ? counters_attach_running(churned, pid, drain_of_all, NULL) : 0;
	skip_without(churned, error, pid);
	uint64_t before_ns = drained_at_ns[1], after_ns = all_threads_ns();
	for (int i = 0; i < 3; i++) {
		run_for(pid, 20 * MS);
		drain_forks(NULL);
		counters_tend(churned);
	}
	kill(pid, SIGSTOP);
	assert_int_equal(waitpid(pid, NULL, WUNTRACED), pid);
	uint64_t end_ns = all_threads_ns();
	counters_read(churned, 0, &totals);
	assert_false(totals.incomplete);
	assert_in_range(totals.counted, (end_ns - after_ns) * 3 / 4, (end_ns - before_ns) * 5 / 4);
	counters_close(churned);
}

static void each_thread_is_counted_once(void **state)
{
	for (int i = 0; i < 40; i++) {
		pid_t pid = start_churning();

		opening_ns = i % 4 * 150000;
		attach_to_churning(pid);
		opening_ns = 0;
		kill(pid, SIGKILL);
		assert_int_equal(waitpid(pid, NULL, 0), pid);
		close(all_threads);
	}
}

static void disable_all(void)
{
	for (int fd = 3; fd < 1024; fd++)
		ioctl(fd, PERF_EVENT_IOC_DISABLE, 0);
}

static uint64_t counted(const struct counters *c)
{
	struct counter_totals totals;

	counters_read(c, 0, &totals);
	return totals.counted;
}

/* A thread has counters that it copied before they were enabled: they are, when its FORK is seen. */
static void what_was_copied_before_is_enabled(void **state)
{
	pid_t pid = start_busy();
	struct event event;
	struct counters *c = attach(&event, pid);
	const struct record fork = {.kind = RECORD_FORK,
	    .pid = (uint32_t)pid,
	    .parent_pid = (uint32_t)pid,
	    .parent_tid = (uint32_t)pid};

	churned = c;
	int error = c ? counters_attach_running(c, pid, drain_forks, NULL) : 0;
	skip_without(c, error, pid);
	disable_all();
	uint64_t before = counted(c);
	counters_tend(c);
	run_for(pid, 20 * MS);
	assert_int_equal(counted(c), before);
	counters_note_fork(c, &fork);
	counters_tend(c);
	run_for(pid, 20 * MS);
	assert_true(counted(c) > before);
	kill(pid, SIGKILL);
	assert_int_equal(waitpid(pid, NULL, 0), pid);
	counters_close(c);
}

/* The parent of a vfork() waits in a state in which it might be creating a thread, for all that can be seen
 * from outside. Its end is the child's, too. */
static pid_t start_waiting(void)
{
	const struct timespec pause_ns = {.tv_nsec = 2 * MS};
	pid_t pid = fork();

	assert_true(pid >= 0);
	if (pid == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		if (vfork() == 0) { /* NOLINT */
			prctl(PR_SET_PDEATHSIG, SIGKILL);
			for (;;)
				pause();
		}
		_exit(0);
	}
	while (proc_state(pid) != 'D')
		nanosleep(&pause_ns, NULL);
	return pid;
}

static void what_cannot_be_found_out_is_said(void **state)
{
	struct counter_totals totals;
	struct event event;
	pid_t pid = start_waiting();

	churned = attach(&event, pid);
	int error = churned ? counters_attach_running(churned, pid, drain_forks, NULL) : 0;
	skip_without(churned, error, pid);
	counters_read(churned, 0, &totals);
	assert_true(totals.incomplete);
	counters_close(churned);
	kill(pid, SIGKILL);
	assert_int_equal(waitpid(pid, NULL, 0), pid);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(attaching_is_no_multiplexing),
	    cmocka_unit_test(one_processor_is_no_multiplexing),
	    cmocka_unit_test(some_processors_do_not_know_it),
	    cmocka_unit_test(none_knows_it),
	    cmocka_unit_test(each_thread_is_counted_once),
	    cmocka_unit_test(what_was_copied_before_is_enabled),
	    cmocka_unit_test(what_cannot_be_found_out_is_said),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
