/* SPDX-License-Identifier: Apache-2.0 */
/* What the daemon makes of attachments that are on their way: the children that attach are the test's. */
#include "pprof/text/clock.h"
#include "proto/region_layout.h"
#include "sampler/cmd/daemon/attach_jobs.h"
#include "sampler/cmd/daemon/candidate.h"
#include "sampler/cmd/daemon/daemon_state.h"
#include "sampler/cmd/daemon/policy.h"
#include "sampler/intake/target_plan.h"
#include "sampler/linux/epoll_set.h"

#include <errno.h>
#include <poll.h>
#include <pwd.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cmocka.h>

#include "tests/unit/region_fixture.h"
#include "tests/unit/stranger.h"

enum { DEADLINE_S = 120 };

static struct daemon d;

static bool look_at_none(void *context, pid_t pid, bool noticed)
{
	(void)context;
	(void)pid;
	(void)noticed;
	return true;
}

static int open_daemon(void **state)
{
	static const char text[] = "[service every]\nmatch.comm = *\nprofile = yes\nattach = yes\n";
	static struct rules rules;
	char error[256];

	(void)state;
	d = (struct daemon){.core.epoll_fd = epoll_create1(EPOLL_CLOEXEC),
	    .rules = &rules,
	    .round = 1,
	    .library_copy.fd = -1};
	d.processes.epoll_fd = d.core.epoll_fd;
	d.guard = crash_guard_new();
	d.core.modules = modules_new(64);
	d.finder = finder_new(&(struct finder_setup){.sweep_ns = CLOCK_NS_PER_S, .look = look_at_none});
	d.core.heap.registry = (struct registry){.setup = {.intake = &d.core.heap.intake,
	                                             .probe = &d.core.heap.probe,
	                                             .modules = d.core.modules,
	                                             .epoll_fd = d.core.epoll_fd,
	                                             .verbosity = -1,
	                                             .launch = &d.core.launch}};
	d.core.heap.probe.backend = BACKEND_COPY;
	registry_init(&d.core.heap.registry);
	return !d.guard || !d.core.modules || !d.finder ||
	    intake_init(&d.core.heap.intake, d.core.modules, &d.core.memory, 0, false) != 0 ||
	    rules_parse(&rules, text, "f", error, sizeof(error)) != 0;
}

static int close_daemon(void **state)
{
	(void)state;
	attach_jobs_end(&d);
	registry_fini(&d.core.heap.registry);
	intake_fini(&d.core.heap.intake);
	finder_free(d.finder);
	crash_guard_free(d.guard);
	modules_free(d.core.modules);
	process_table_fini(&d.processes);
	rules_fini(d.rules);
	close(d.core.epoll_fd);
	return 0;
}

static struct process_entry *enter(pid_t pid)
{
	const struct thread_birth identity = thread_facts_birth(pid);
	bool is_new;
	struct process_entry *entry = process_table_enter(&d.processes, pid, &identity, &is_new);

	assert_non_null(entry);
	return entry;
}

/* One that is on its way, to that process. */
static struct attach_job *begin(
    pid_t pid, int (*run)(struct attachment *attachment, const struct attachment_wish *wish))
{
	const struct region_options options = {.period_bytes = 1,
	    .clock_id = region_clock(),
	    .live_max = (uint64_t)REGION_OFFER_SEGMENTS * REGION_SEGMENT_SLOTS,
	    .mode = REGION_MODE_COPY};
	struct attach_job *one = d.attach_jobs;

	while (one->region)
		one++;
	*one = (struct attach_job){.region = calloc(1, sizeof(*one->region)),
	    .facts = {.pid = pid, .plan = calloc(1, sizeof(struct target_plan))},
	    .begun_ns = clock_now_ns()};
	assert_int_equal(region_open(one->region, 1, 0x10000, &options), 0);
	region_header(one->region)->offered = 1;
	const struct attachment_wish wish = {.pid = pid, .region = one->region};
	assert_int_equal(attacher_start(&one->attacher, run, &wish), 0);
	assert_int_equal(epoll_set_add(d.core.epoll_fd, one->attacher.fd), 0);
	return one;
}

static void take_result(const struct attach_job *one)
{
	struct epoll_event event;

	assert_int_equal(epoll_wait(d.core.epoll_fd, &event, 1, DEADLINE_S * 1000), 1);
	assert_int_equal(event.data.fd, one->attacher.fd);
	assert_true(attach_jobs_event(&d, event.data.fd));
	assert_null(one->region);
}

static int fail_at_once(struct attachment *attachment, const struct attachment_wish *wish)
{
	(void)wish;
	*attachment = (struct attachment){.reason = "another heaptap has attached to it"};
	return -EIO;
}

static int fail_when_given_up(struct attachment *attachment, const struct attachment_wish *wish)
{
	struct pollfd cancel = {.fd = wish->cancel_fd, .events = POLLIN};

	*attachment = (struct attachment){.reason = "given up"};
	return poll(&cancel, 1, -1) == 1 ? -ECANCELED : 0;
}

static int answer_never(struct attachment *attachment, const struct attachment_wish *wish)
{
	(void)attachment;
	(void)wish;
	for (;;)
		pause();
	return 0;
}

/* The target may hold up its child for ever: its seat is another's after a while. */
static void a_seat_is_not_lost(void **state)
{
	(void)state;
	struct attach_job *mute = begin(getpid(), answer_never), *young = begin(1, fail_when_given_up);
	const uint64_t now_ns = clock_now_ns(), end_ns = now_ns + UINT64_C(1000000000) * DEADLINE_S;
	attach_jobs_give_up(&d, now_ns);
	assert_int_equal(mute->attacher.given_up_ns, 0);
	/* An hour later, not earlier: the clock begins when the machine does. */
	const uint64_t hour_ns = UINT64_C(3600) * CLOCK_NS_PER_S;
	young->begun_ns += hour_ns;
	while (mute->region && clock_now_ns() < end_ns) {
		attach_jobs_give_up(&d, clock_now_ns() + hour_ns);
		usleep(100 * 1000);
	}
	assert_null(mute->region);
	assert_non_null(young->region);
	assert_int_equal(young->attacher.given_up_ns, 0);
}

/* Processes of one account may hold up their children for ever, and be many. */
static void seats_are_left_for_other_accounts(void **state)
{
	static const char *const accounts[] = {"uid-1000", "unit-a.service", "unit-b.service", "uid-0"};
	static const size_t most[] = {8, 4, 2, 1};

	(void)state;
	for (size_t i = 0; i < sizeof(accounts) / sizeof(accounts[0]); i++) {
		size_t seats = 0;

		while (attach_jobs_empty(&d, accounts[i])) {
			struct attach_job *one = begin(1, fail_when_given_up);

			snprintf(
			    one->facts.plan->account, sizeof(one->facts.plan->account), "%s", accounts[i]);
			seats++;
		}
		assert_int_equal(seats, most[i]);
	}
	assert_non_null(attach_jobs_empty(&d, "uid-33")); /* the last one */
	attacher_give_up(&d.attach_jobs[0].attacher);
	take_result(&d.attach_jobs[0]);
	assert_null(attach_jobs_empty(&d, accounts[0]));
	assert_non_null(attach_jobs_empty(&d, accounts[3]));
}

/* The rules may be read anew meanwhile, or everything turned off and on. */
static void it_is_not_attached_to_twice(void **state)
{
	struct stranger target = stranger_start(NULL, NULL);
	struct process_entry *entry = enter(target.pid);

	(void)state;
	struct attach_job *one = begin(target.pid, fail_when_given_up);
	entry->state = PROCESS_ATTACHING;
	policy_match_all_again(&d);
	assert_int_equal(entry->state, PROCESS_ATTACHING);
	assert_false(attach_jobs_try(&d, entry, false)); /* as another program that it has executed */
	assert_int_equal(entry->state, PROCESS_NOT_YET);
	assert_null(d.attach_jobs[1].region);
	entry->state = PROCESS_PROFILED;
	attacher_give_up(&one->attacher);
	take_result(one);
	assert_int_equal(entry->state, PROCESS_PROFILED);
	assert_null(entry->reason);
	stranger_end(&target);
}

static void a_failure_is_said(void **state)
{
	struct process_entry *entry = enter(getpid());

	(void)state;
	struct attach_job *one = begin(getpid(), fail_at_once);
	entry->state = PROCESS_ATTACHING;
	take_result(one);
	assert_int_equal(entry->state, PROCESS_REFUSED);
	assert_string_equal(entry->reason, "cannot be attached to: another heaptap has attached to it");
	policy_match_all_again(&d);
	assert_int_equal(entry->state, PROCESS_NOT_YET); /* another look */
}

/* A child that the target forks before the result is there has the region, too: that is no second program
 * run. */
static void a_child_waits_for_its_parent(void **state)
{
	(void)state;
	if (geteuid() != 0) {
		print_message("only root opens others' mappings\n");
		skip();
	}
	struct attach_job *one = begin(getpid(), fail_when_given_up);
	struct region *region = one->region;
	struct region_header *header = region_header(region);
	atomic_store(&header->sampler_pid, (uint32_t)getpid());
	atomic_store(&header->state, REGION_READY);
	struct stranger child = stranger_start(NULL, NULL);
	struct process_entry *entry = enter(child.pid);
	assert_false(candidate_look(&d, child.pid, false));
	assert_int_equal(entry->state, PROCESS_NOT_YET);
	assert_true(registry_empty(&d.core.heap.registry));
	/* It is nobody's any more: what the child offers is taken. */
	one->region = NULL;
	assert_true(candidate_look(&d, child.pid, false));
	assert_int_equal(entry->state, PROCESS_PROFILED);
	assert_false(registry_empty(&d.core.heap.registry));
	one->region = region;
	stranger_end(&child);
}

/* ---- who becomes another while it is decided about */

static struct stranger *at_the_facts;

/* Of the sampler: it reads the facts. */
int fgetpwent_r(FILE *restrict stream, struct passwd *restrict entry, char *restrict buffer, size_t bytes,
    struct passwd **restrict found)
{
	struct stranger *stranger = at_the_facts;
	char byte = 1;

	(void)stream;
	(void)entry;
	(void)buffer;
	(void)bytes;
	*found = NULL;
	at_the_facts = NULL;
	if (stranger) {
		assert_int_equal(write(stranger->fd, &byte, 1), 1);
		assert_int_equal(read(stranger->fd, &byte, 1), 1); /* it has */
	}
	return ENOENT;
}

static void then_execute(int fd, void *argument)
{
	char byte;

	(void)argument;
	if (read(fd, &byte, 1) == 1 && dup2(fd, 0) == 0 && dup2(fd, 1) == 1)
		execl("/bin/sh", "sh", "-c", "printf x; exec cat", (char *)NULL);
	_exit(1);
}

static void then_unmap(int fd, void *argument)
{
	const struct region *region = argument;
	char byte;

	if (read(fd, &byte, 1) == 1 && munmap(region->base, region->offsets.end) == 0 &&
	    write(fd, &byte, 1) == 1)
		(void)!read(fd, &byte, 1);
}

static void stay(int fd, void *argument)
{
	char byte;

	(void)argument;
	if (read(fd, &byte, 1) == 1 && write(fd, &byte, 1) == 1)
		(void)!read(fd, &byte, 1);
}

/* Whether it is profiled. */
static bool offers_and(void (*then)(int fd, void *argument))
{
	const struct region_options options = {.period_bytes = 1,
	    .clock_id = region_clock(),
	    .live_max = (uint64_t)REGION_OFFER_SEGMENTS * REGION_SEGMENT_SLOTS};
	struct region region;

	assert_int_equal(region_open(&region, 1, 0x10000, &options), 0);
	region_header(&region)->offered = 1;
	atomic_store(&region_header(&region)->sampler_pid, 0);
	atomic_store(&region_header(&region)->state, REGION_OFFERED);
	struct stranger stranger = stranger_start(then, &region);
	struct process_entry *entry = enter(stranger.pid);
	at_the_facts = &stranger;
	(void)candidate_look(&d, stranger.pid, false);
	assert_null(at_the_facts);
	const bool taken = entry->state == PROCESS_PROFILED;
	assert_int_equal(!registry_empty(&d.core.heap.registry), taken);
	stranger_end(&stranger);
	region_close(&region);
	return taken;
}

/* What was read may be of a program that runs as another user. */
static void who_is_another_when_it_is_decided_about_is_left_alone(void **state)
{
	(void)state;
	if (geteuid() != 0) {
		print_message("only root opens others' mappings\n");
		skip();
	}
	assert_false(offers_and(then_execute));
	assert_false(offers_and(then_unmap));
	assert_true(offers_and(stay));
}

static void who_is_another_when_it_is_attached_to_is_left_alone(void **state)
{
	(void)state;
	struct stranger stranger = stranger_start(NULL, NULL);
	struct attachment attachment;
	struct attachment_wish wish = {
	    .pid = stranger.pid, .birth = thread_facts_birth(stranger.pid), .cancel_fd = -1};
	wish.birth.stack_start += 4096;
	assert_int_equal(attachment_begin(&attachment, &wish), -EIO);
	assert_string_equal(attachment.reason, "it executes another program now");
	stranger_end(&stranger);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test_setup_teardown(it_is_not_attached_to_twice, open_daemon, close_daemon),
	    cmocka_unit_test_setup_teardown(a_failure_is_said, open_daemon, close_daemon),
	    cmocka_unit_test_setup_teardown(a_child_waits_for_its_parent, open_daemon, close_daemon),
	    cmocka_unit_test_setup_teardown(a_seat_is_not_lost, open_daemon, close_daemon),
	    cmocka_unit_test_setup_teardown(seats_are_left_for_other_accounts, open_daemon, close_daemon),
	    cmocka_unit_test_setup_teardown(
	        who_is_another_when_it_is_decided_about_is_left_alone, open_daemon, close_daemon),
	    cmocka_unit_test_setup_teardown(
	        who_is_another_when_it_is_attached_to_is_left_alone, open_daemon, close_daemon),
	};

	return cmocka_run_group_tests_name("daemon_attaching", tests, NULL, NULL);
}
