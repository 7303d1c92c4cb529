/* SPDX-License-Identifier: Apache-2.0 */
/* arm64: qemu-aarch64 runs this test, too */
/* The web process' side of what the broker hands over: here the test is the broker. */
#include "pprof/text/clock.h"
#include "serve/broker_client.h"
#include "serve/catalog.h"
#include "serve/catalog_files.h"
#include "serve/process_profiles.h"
#include "serve/request.h"
#include "serve/snapshots.h"

#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

/* The other end of a client. */
struct broker {
	struct broker_client *client;
	int fd;
};

static void broker_open(struct broker *broker)
{
	int pair[2];

	assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair), 0);
	broker->client = broker_client_new(pair[0]);
	broker->fd = pair[1];
	assert_non_null(broker->client);
}

static void broker_close(struct broker *broker)
{
	broker_client_free(broker->client);
	close(broker->fd);
}

/* The next question that has been sent; false: there is none. */
static bool take(const struct broker *broker, struct broker_question *question)
{
	int fd, got = broker_message_receive(broker->fd, question, sizeof(*question), &fd);

	assert_true(got == 1 || got == -EAGAIN);
	return got == 1;
}

static size_t take_all(const struct broker *broker, struct broker_question *questions, size_t room)
{
	size_t count = 0;

	while (count < room && take(broker, &questions[count]))
		count++;
	return count;
}

/* Answers with so many bytes; NULL: zeros. */
static void answer(const struct broker *broker, uint64_t id, const void *bytes, size_t length)
{
	struct broker_reply reply = {.id = id, .bytes = length, .last = 1};
	int fd = memfd_create("test", MFD_CLOEXEC);

	assert_true(fd >= 0);
	assert_int_equal(ftruncate(fd, (off_t)length), 0);
	if (bytes)
		assert_int_equal(write(fd, bytes, length), length);
	assert_int_equal(broker_message_send(broker->fd, &reply, sizeof(reply), fd), 0);
	close(fd);
	assert_true(broker_client_event(broker->client));
}

static void refuse(const struct broker *broker, uint64_t id)
{
	const struct broker_reply reply = {.id = id, .error = -EIO, .last = 1};

	assert_int_equal(broker_message_send(broker->fd, &reply, sizeof(reply), -1), 0);
	assert_true(broker_client_event(broker->client));
}

/* ---- turns */

static void count_call(void *context, const struct broker_reply *reply, int fd)
{
	assert_int_equal(reply->error, -EIO);
	assert_int_equal(fd, -1);
	++*(size_t *)context;
}

static void a_sampler_makes_few_profiles_at_once(void **state)
{
	const struct broker_question heap = {.verb = BROKER_PROFILE, .server = 7, .pid = 1},
	                             other = {.verb = BROKER_PROFILE, .server = 8, .pid = 1},
	                             cpu = {.verb = BROKER_CPU, .server = 7, .pid = 1, .duration_ms = 1000};
	struct broker_question sent[64];
	uint64_t ids[20], last;
	struct broker broker;
	size_t calls = 0, answered = 0;

	(void)state;
	broker_open(&broker);
	for (size_t i = 0; i < 20; i++)
		assert_true(ids[i] = broker_client_ask(broker.client, &heap, count_call, &calls));
	assert_int_equal(take_all(&broker, sent, 64), BROKER_CLIENT_PROFILES_AT_ONCE);
	/* Another sampler has nothing to do with that, nor have samples of CPU time, which cannot wait. */
	last = broker_client_ask(broker.client, &other, count_call, &calls);
	assert_true(take(&broker, sent));
	assert_int_equal(sent[0].id, last);
	for (int i = 0; i < BROKER_CLIENT_CPU_AT_ONCE; i++)
		assert_true(broker_client_ask(broker.client, &cpu, count_call, &calls));
	assert_int_equal(take_all(&broker, sent, 64), BROKER_CLIENT_CPU_AT_ONCE);
	assert_int_equal(broker_client_ask(broker.client, &cpu, count_call, &calls), 0);
	/* One that is not sent yet is not heard of any more, one that is makes room. */
	broker_client_cancel(broker.client, ids[19]);
	assert_false(take(&broker, sent));
	broker_client_cancel(broker.client, ids[0]);
	assert_int_equal(take_all(&broker, sent, 64), 2);
	assert_int_equal(sent[0].verb, BROKER_CANCEL);
	assert_int_equal(sent[0].id, ids[0]);
	assert_int_equal(sent[1].id, ids[6]);
	/* In their order. */
	for (size_t i = 1; i < 19; i++, answered++) {
		refuse(&broker, ids[i]);
		if (i + 6 < 19) {
			assert_true(take(&broker, sent));
			assert_int_equal(sent[0].id, ids[i + 6]);
		}
		assert_false(take(&broker, sent));
	}
	assert_int_equal(calls, answered);
	broker_close(&broker);
}

static size_t fetched;

static void count_fetched(struct task *task)
{
	(void)task;
	fetched++;
}

/* Where one is refused nobody waits for the others. */
static void cpu_time_is_of_all_or_nobody(void **state)
{
	enum { MOST = BROKER_CLIENT_CPU_AT_ONCE };
	struct broker_question sent[4 * MOST];
	struct broker broker;
	struct server server = {0};
	struct request *request = NULL;

	(void)state;
	broker_open(&broker);
	server.broker = broker.client;
	for (size_t count = MOST + 1; count >= MOST; count--) {
		struct task *task;

		request = request_new(&server, "/");
		assert_non_null(request);
		task = request_new_task(request, sizeof(*task), count);
		assert_non_null(task);
		task->fetched = count_fetched;
		task->count = count;
		for (size_t i = 0; i < count; i++) {
			task->items[i].kind = TASK_CPU;
			task->items[i].key = (struct process_key){.server = 7, .pid = (pid_t)i + 1};
		}
		task_fetch(task, 0, 0);
		if (count == MOST)
			break;
		assert_int_equal(fetched, 1);
		assert_int_equal(task_failure_of_sum(task)->error, -EBUSY);
		assert_int_equal(take_all(&broker, sent, 4 * MOST), 2 * MOST);
		for (size_t i = 0; i < MOST; i++) {
			assert_int_equal(sent[MOST + i].verb, BROKER_CANCEL);
			assert_int_equal(sent[MOST + i].id, sent[i].id);
		}
		request_free(request);
	}
	/* There is room again, and of so many each is waited for. */
	assert_int_equal(fetched, 1);
	assert_int_equal(take_all(&broker, sent, 4 * MOST), MOST);
	for (size_t i = 0; i < MOST; i++)
		refuse(&broker, sent[i].id);
	assert_int_equal(fetched, 2);
	request_free(request);
	broker_close(&broker);
}

/* ---- snapshots */

struct got {
	struct snapshots_waiter waiter;
	size_t calls;
};

static void on_snapshot(struct snapshots_waiter *waiter, struct blob *profile, int error, const char *why)
{
	(void)why;
	assert_int_equal(error, 0);
	((struct got *)waiter)->calls++;
	blob_drop(profile);
}

static void kept_snapshots_are_bounded(void **state)
{
	enum { PROCESSES = 8, BYTES = 20 << 20 };
	struct broker broker;
	struct snapshots *snapshots;
	struct broker_question question;
	size_t kept = 0;

	(void)state;
	broker_open(&broker);
	snapshots = snapshots_new(broker.client);
	for (int i = 1; i <= PROCESSES; i++) {
		const struct process_key key = {.server = 1, .pid = i};
		struct got got = {.waiter.got = on_snapshot};

		snapshots_want(snapshots, &key, &got.waiter, 0);
		assert_true(take(&broker, &question));
		assert_int_equal(question.pid, i);
		answer(&broker, question.id, NULL, BYTES);
		assert_int_equal(got.calls, 1);
		/* For a second it is there for whoever asks. */
		snapshots_want(snapshots, &key, &got.waiter, 0);
		assert_true(got.calls == 2 || take(&broker, &question));
		if (got.calls != 2)
			answer(&broker, question.id, NULL, BYTES);
	}
	for (int i = 1; i <= PROCESSES; i++) {
		const struct process_key key = {.server = 1, .pid = i};
		const struct kept_snapshot *moments;

		kept += snapshots_kept(snapshots, &key, &moments);
	}
	assert_int_equal(kept, SNAPSHOTS_KEPT_BYTES / BYTES);
	snapshots_free(snapshots);
	broker_close(&broker);
}

/* Asks for a snapshot of that size, and gets it. Returns how many of the process are kept then. */
static size_t keep_one(
    const struct broker *broker, struct snapshots *snapshots, struct process_key key, size_t bytes)
{
	const struct kept_snapshot *kept;
	struct got got = {.waiter.got = on_snapshot};
	struct broker_question question;

	snapshots_want(snapshots, &key, &got.waiter, UINT64_MAX / 2);
	assert_true(take(broker, &question));
	answer(broker, question.id, NULL, bytes);
	/* The next one is asked for, since none is that new; nobody wants it. */
	snapshots_leave(&got.waiter);
	assert_true(take(broker, &question));
	answer(broker, question.id, NULL, 1);
	return snapshots_kept(snapshots, &key, &kept);
}

static void snapshots_of_strangers_push_out_no_others(void **state)
{
	const struct process_key ours = {.server = 1, .pid = 1},
	                         his = {.server = 2, .pid = 2, .foreign = true},
	                         other = {.server = 2, .pid = 3, .foreign = true};
	const size_t half = SNAPSHOTS_KEPT_BYTES / 2;
	const struct kept_snapshot *kept;
	struct snapshots *snapshots;
	struct broker broker;

	(void)state;
	broker_open(&broker);
	snapshots = snapshots_new(broker.client);
	assert_int_equal(keep_one(&broker, snapshots, ours, half), 2);
	assert_int_equal(keep_one(&broker, snapshots, his, half + 1), 1);
	assert_int_equal(snapshots_kept(snapshots, &ours, &kept), 2);
	assert_int_equal(keep_one(&broker, snapshots, his, half / 2), 3);
	assert_int_equal(keep_one(&broker, snapshots, other, half / 2 + 1), 2);
	assert_int_equal(snapshots_kept(snapshots, &ours, &kept), 2);
	assert_true(snapshots_kept(snapshots, &his, &kept) < 3);
	/* Ours push out his. */
	assert_int_equal(keep_one(&broker, snapshots, ours, half - 3), 4);
	assert_true(snapshots_kept(snapshots, &his, &kept) + snapshots_kept(snapshots, &other, &kept) <= 1);
	snapshots_free(snapshots);
	broker_close(&broker);
}

static bool is_never_there(const void *context, const struct process_key *key)
{
	(void)context;
	(void)key;
	return false;
}

/* A sampler that does not answer once, or is started again, takes nothing from what was seen before. */
static void who_is_not_listed_is_remembered_for_a_while(void **state)
{
	const struct process_key key = {.server = 1, .start_unix_ns = 5, .pid = 9};
	const struct control_process listed = {.pid = 9, .inuse_bytes = 1};
	const uint64_t now_ns = clock_now_ns(), step_ns = UINT64_C(1000000000);
	struct catalog_histories histories = {0};
	const struct kept_snapshot *moments;
	struct got got = {.waiter.got = on_snapshot};
	struct broker_question question;
	struct snapshots *snapshots;
	struct broker broker;

	(void)state;
	broker_open(&broker);
	snapshots = snapshots_new(broker.client);
	snapshots_want(snapshots, &key, &got.waiter, 0);
	assert_true(take(&broker, &question));
	answer(&broker, question.id, "x", 1);
	snapshots_sweep(snapshots, is_never_there, NULL, now_ns);
	snapshots_sweep(snapshots, is_never_there, NULL, now_ns + 50 * step_ns);
	assert_int_equal(snapshots_kept(snapshots, &key, &moments), 1);
	snapshots_sweep(snapshots, is_never_there, NULL, now_ns + 600 * step_ns);
	assert_int_equal(snapshots_kept(snapshots, &key, &moments), 0);
	snapshots_free(snapshots);
	broker_close(&broker);

	assert_int_equal(catalog_histories_note(&histories, &key, &listed, now_ns, 0)->count, 1);
	catalog_histories_sweep(&histories, now_ns);
	catalog_histories_sweep(&histories, now_ns + 50 * step_ns);
	assert_int_equal(histories.count, 1);
	catalog_histories_sweep(&histories, now_ns + 61 * step_ns);
	assert_int_equal(histories.count, 0);
	catalog_histories_note(&histories, &key, &listed, now_ns, 0);
	catalog_histories_fini(&histories);
	assert_int_equal(histories.count, 0);
}

/* ---- files */

static void on_scanned(void *context)
{
	++*(size_t *)context;
}

static void scan(const struct broker *broker, struct catalog_files *files, const char *text, size_t length)
{
	struct broker_question question;

	assert_true(catalog_files_begin(files));
	assert_true(take(broker, &question));
	assert_int_equal(question.verb, BROKER_SCAN);
	answer(broker, question.id, text, length);
}

static void files_that_are_gone_stay_until_nobody_refers_to_them(void **state)
{
	static const char both[] = "1 10 100 /a.pb.gz\0002 10 100 /b.pb.gz", one[] = "2 10 100 /b.pb.gz";
	struct catalog_file *const *found, *first;
	struct catalog_files *files;
	struct broker_question question;
	struct broker broker;
	size_t scans = 0;
	int error;
	struct jobs *jobs = jobs_new(&error);

	(void)state;
	assert_non_null(jobs);
	broker_open(&broker);
	files = catalog_files_new(broker.client, jobs, on_scanned, &scans);
	scan(&broker, files, both, sizeof(both));
	for (int i = 0; i < 2; i++) {
		assert_true(take(&broker, &question));
		assert_int_equal(question.verb, BROKER_OPEN);
		refuse(&broker, question.id);
	}
	assert_int_equal(scans, 1);
	assert_int_equal(catalog_files_all(files, &found), 2);
	first = found[0];
	assert_true(first->there);
	/* The list of processes may have it until it is made anew. */
	scan(&broker, files, one, sizeof(one));
	assert_int_equal(scans, 2);
	assert_int_equal(catalog_files_all(files, &found), 2);
	assert_ptr_equal(found[0], first);
	assert_false(first->there);
	assert_string_equal(first->path, "/a.pb.gz");
	catalog_files_drop_gone(files);
	assert_int_equal(catalog_files_all(files, &found), 1);
	assert_int_equal(found[0]->number, 2);
	/* And one that comes back is read. */
	scan(&broker, files, both, sizeof(both));
	assert_true(take(&broker, &question));
	assert_int_equal(question.file, 1);
	refuse(&broker, question.id);
	assert_int_equal(scans, 3);
	jobs_free(jobs);
	catalog_files_free(files);
	broker_close(&broker);
}

/* ---- series */

static void a_series_is_by_time_with_its_ends(void **state)
{
	enum { FILES = 100, MOST = 10 };
	static struct catalog_file files[FILES];
	static struct task_item items[FILES + 1];
	const struct catalog_file *list[FILES];
	struct catalog_process process = {.key = {.server = 1, .pid = 5}, .files = list};
	const int64_t now_ns = clock_unix_ns(), hour_ns = INT64_C(3600) * CLOCK_NS_PER_S;
	struct got got = {.waiter.got = on_snapshot};
	struct broker broker;
	struct broker_question question;
	struct snapshots *snapshots;

	(void)state;
	for (int i = 0; i < FILES; i++) {
		files[i] = (struct catalog_file){.number = (uint64_t)i,
		    .time_ns = now_ns + (i - 50) * hour_ns,
		    .state = CATALOG_FILE_READ};
		list[i] = &files[i];
	}
	broker_open(&broker);
	snapshots = snapshots_new(broker.client);
	/* All of few, one of a kind that is no state left out. */
	process.file_count = 3;
	files[1].kind = ORIGIN_PEAK;
	assert_int_equal(process_profiles_series(&process, snapshots, items, MOST), 2);
	assert_string_equal(items[0].id, "f-0000000000000000");
	assert_string_equal(items[1].id, "f-0000000000000002");
	files[1].kind = ORIGIN_LIVE;
	/* Of many so many, always the first and the last. */
	for (size_t count = MOST - 1; count <= FILES; count++) {
		const size_t wanted = count < MOST ? count : MOST;

		process.file_count = count;
		assert_int_equal(process_profiles_series(&process, snapshots, items, MOST), wanted);
		assert_int_equal(items[0].file, 0);
		assert_int_equal(items[wanted - 1].file, count - 1);
		for (size_t i = 1; i < wanted; i++)
			assert_true(items[i].file > items[i - 1].file);
	}
	/* A moment of now is between the files of before and after. */
	snapshots_want(snapshots, &process.key, &got.waiter, 0);
	assert_true(take(&broker, &question));
	answer(&broker, question.id, "x", 1);
	assert_int_equal(process_profiles_series(&process, snapshots, items, FILES + 1), FILES + 1);
	assert_int_equal(items[50].file, 50);
	assert_int_equal(items[51].kind, TASK_READY);
	assert_int_equal(items[52].file, 51);
	blob_drop(items[51].profile);
	snapshots_free(snapshots);
	broker_close(&broker);
}

/* Of several that list a process, root's sampler is right, then who came first; one that lists it as not
 * profiled says nothing against the others. */
static void one_sampler_is_right(void **state)
{
	struct control_process first[] = {{.pid = 1, .profiled = true}, {.pid = 2, .profiled = true}},
	                       later[] = {{.pid = 2, .profiled = true}, {.pid = 3, .profiled = true}},
	                       roots[] = {{.pid = 3, .profiled = true}, {.pid = 1, .profiled = false}},
	                       daemons[] = {{.pid = 3, .profiled = true}};
	struct control_list lists[] = {{.processes = later, .process_count = 2},
	    {.processes = roots, .process_count = 2}, {.processes = first, .process_count = 2},
	    {.processes = daemons, .process_count = 1}};
	static struct catalog_lists all;

	(void)state;
	all = (struct catalog_lists){.items = {{.list = &lists[0], .server = 4, .user = 6, .foreign = true},
	                                 {.list = &lists[1], .server = 9},
	                                 {.list = &lists[2], .server = 3, .user = 5, .foreign = true},
	                                 {.list = &lists[3], .server = 8}},
	    .count = 4};
	assert_int_equal(catalog_lists_settle(&all), 0);
	assert_true(first[0].profiled && first[1].profiled);
	assert_false(later[0].profiled || later[1].profiled);
	assert_true(roots[0].profiled && daemons[0].profiled);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(a_sampler_makes_few_profiles_at_once),
	    cmocka_unit_test(cpu_time_is_of_all_or_nobody),
	    cmocka_unit_test(kept_snapshots_are_bounded),
	    cmocka_unit_test(snapshots_of_strangers_push_out_no_others),
	    cmocka_unit_test(who_is_not_listed_is_remembered_for_a_while),
	    cmocka_unit_test(a_series_is_by_time_with_its_ends),
	    cmocka_unit_test(one_sampler_is_right),
	    cmocka_unit_test(files_that_are_gone_stay_until_nobody_refers_to_them),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
