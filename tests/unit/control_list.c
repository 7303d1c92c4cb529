/* SPDX-License-Identifier: Apache-2.0 */
/* The list of a daemon's processes: written, read again, and as a hostile server would write it. */
#include "sampler/core/control_list.h"

#include "sampler/core/control_request.h"

#include <errno.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static void all_fields_come_back(void **state)
{
	struct control_loss losses[] = {{"full ring", 3}, {"a=b", UINT64_MAX}};
	struct control_label labels[] = {{"host", "a"}, {"k8s.pod", ""}, {"eq", "x=y"}};
	const struct control_daemon daemon = {.pid = 12,
	    .since_unix_ns = 1763834640123456789,
	    .cpu_ns = 5,
	    .rss_bytes = UINT64_MAX,
	    .disk_bytes = 7,
	    .disk_budget_bytes = 8,
	    .version = "0.1.0",
	    .store = "/var/lib/heaptap/store",
	    .config = NULL,
	    .off = "/run/heaptap/off is there"};
	const struct control_process process = {.pid = 4711,
	    .service = "redis",
	    .exe = "/usr/bin/redis=server",
	    .comm = "redis",
	    .container_id = "abc",
	    .since_unix_ns = 1,
	    .profiled = true,
	    .inuse_bytes = 1.5e9,
	    .inuse_bytes_error = NAN,
	    .inuse_objects = 3,
	    .growth = {"grows", 1.5, NAN, 3, 4, 12.25, 2},
	    .rss_bytes = 9,
	    .samples = 10,
	    .backend = "copy",
	    .losses = losses,
	    .loss_count = 2,
	    .labels = labels,
	    .label_count = 3};
	const struct control_process other = {
	    .pid = 1, .service = "x", .reason = "denied", .inuse_bytes = NAN};
	const struct control_denied denied = {"/bin/x", "0123", 77, "3 deaths"};
	struct control_list_writer writer = {0};
	struct control_list list;

	control_list_write_daemon(&writer, &daemon);
	control_list_write_process(&writer, &process);
	control_list_write_process(&writer, &other);
	control_list_write_denied(&writer, &denied);
	control_list_write_note(&writer, "line 7: = is missing");
	assert_int_equal(writer.error, 0);
	assert_int_equal(control_list_parse(&list, writer.text, writer.bytes), 0);
	control_list_writer_fini(&writer);
	assert_int_equal(list.daemon.pid, 12);
	assert_true(list.daemon.since_unix_ns == daemon.since_unix_ns);
	assert_true(list.daemon.rss_bytes == UINT64_MAX);
	assert_string_equal(list.daemon.config, "");
	assert_string_equal(list.daemon.off, daemon.off);
	assert_int_equal(list.process_count, 2);
	const struct control_process *read = &list.processes[0];
	assert_string_equal(read->exe, process.exe);
	assert_true(read->profiled);
	assert_true(read->inuse_bytes == 1.5e9 && isnan(read->inuse_bytes_error));
	assert_string_equal(read->growth.kind, "grows");
	assert_true(read->growth.bytes == 1.5 && isnan(read->growth.bytes_error));
	assert_true(read->growth.since_unix_ns == 3 && read->growth.until_unix_ns == 4);
	assert_true(read->growth.bytes_per_hour == 12.25 && read->growth.bytes_per_hour_error == 2);
	assert_string_equal(list.processes[1].growth.kind, "");
	assert_string_equal(read->reason, "");
	assert_int_equal(read->loss_count, 2);
	assert_string_equal(read->losses[0].cause, "full ring");
	assert_int_equal(read->losses[0].count, 3);
	assert_string_equal(read->losses[1].cause, "a"); /* a key has no '=' */
	assert_int_equal(read->label_count, 3);
	assert_string_equal(read->labels[1].value, "");
	assert_string_equal(read->labels[2].value, "x=y");
	assert_false(list.processes[1].profiled);
	assert_string_equal(list.processes[1].reason, "denied");
	assert_int_equal(list.processes[1].label_count, 0);
	assert_int_equal(list.denied_count, 1);
	assert_string_equal(list.denied[0].reason, "3 deaths");
	assert_int_equal(list.note_count, 1);
	assert_string_equal(list.notes[0], "line 7: = is missing");
	control_list_fini(&list);
}

static void a_newer_server_may_say_more(void **state)
{
	static const char text[] =
	    "weather\0wind=3\0\0process\0pid=5\0colour=blue\0novalue\0\0note\0text=n\0";
	struct control_list list;

	assert_int_equal(control_list_parse(&list, text, sizeof(text)), 0);
	assert_int_equal(list.process_count, 1);
	assert_int_equal(list.processes[0].pid, 5);
	assert_string_equal(list.processes[0].service, "");
	assert_true(isnan(list.processes[0].inuse_bytes));
	assert_string_equal(list.notes[0], "n");
	control_list_fini(&list);
	assert_int_equal(control_list_parse(&list, "", 0), 0);
	assert_string_equal(list.daemon.version, "");
	control_list_fini(&list);
}

static void what_is_hostile_is_made_harmless(void **state)
{
	static const char text[] = "process\0service=a\x1b[2J\xff\xc2\x9b\0samples=-5\0label.k\n=\x07\0\0";
	struct control_list list;

	assert_int_equal(control_list_parse(&list, text, sizeof(text) - 1), 0);
	assert_string_equal(list.processes[0].service, "a?[2J???");
	assert_int_equal(list.processes[0].samples, 0);
	assert_string_equal(list.processes[0].labels[0].key, "k?");
	assert_string_equal(list.processes[0].labels[0].value, "?");
	control_list_fini(&list);
	assert_int_equal(control_list_parse(&list, "process\0pid=1", 13), -EPROTO); /* no end */
}

/* As many losses and labels as there are, of as many processes: no more are kept than the limits say. */
static void lists_are_bounded(void **state)
{
	struct control_list_writer writer = {0};
	struct control_label labels[CONTROL_LABELS_MAX + 1];
	struct control_process process = {.labels = labels, .label_count = CONTROL_LABELS_MAX + 1};
	struct control_list list;

	for (size_t i = 0; i < CONTROL_LABELS_MAX + 1; i++)
		labels[i] = (struct control_label){"k", "v"};
	control_list_write_process(&writer, &process);
	control_list_write_process(&writer, &process);
	assert_int_equal(control_list_parse(&list, writer.text, writer.bytes), 0);
	assert_int_equal(list.processes[1].label_count, CONTROL_LABELS_MAX);
	control_list_fini(&list);
	control_list_writer_fini(&writer);

	char *text = malloc(CONTROL_LIST_BYTES_MAX + 1);
	size_t bytes = 0;
	for (size_t i = 0; i < CONTROL_PROCESSES_MAX + 1; i++, bytes += 9)
		memcpy(text + bytes, "process\0", 9);
	assert_int_equal(control_list_parse(&list, text, bytes), -E2BIG);
	assert_int_equal(control_list_parse(&list, text, CONTROL_LIST_BYTES_MAX + 1), -E2BIG);
	/* Losses that belong to no process: nothing is written behind the arrays. */
	for (bytes = 0; bytes + 7 <= (1 << 20); bytes += 7)
		memcpy(text + bytes, "lost.=", 7);
	assert_int_equal(control_list_parse(&list, text, bytes), 0);
	control_list_fini(&list);
	free(text);
}

/* A daemon with too many processes says what it can. */
static void what_is_written_is_bounded(void **state)
{
	struct control_list_writer writer = {0};
	char *note = malloc(1 << 20);

	memset(note, 'x', (1 << 20) - 1);
	note[(1 << 20) - 1] = '\0';
	for (int i = 0; i < 40; i++)
		control_list_write_note(&writer, note);
	assert_int_equal(writer.error, -E2BIG);
	assert_true(writer.bytes <= CONTROL_LIST_BYTES_MAX);
	control_list_writer_fini(&writer);
	free(note);
}

/* Else a user with many processes would have everybody's list fail. */
static void a_process_for_which_there_is_no_room_is_left_out(void **state)
{
	struct control_list_writer writer = {0};
	struct control_list list;
	char exe[4096];

	memset(exe, 'x', sizeof(exe));
	exe[sizeof(exe) - 1] = '\0';
	const struct control_process first = {.pid = 7, .exe = "/bin/first"};
	const struct control_process process = {.pid = 8, .exe = exe};
	const uint64_t count = CONTROL_LIST_BYTES_MAX / sizeof(exe) + 10;
	control_list_write_process(&writer, &first);
	for (uint64_t i = 0; i < count; i++)
		control_list_write_process(&writer, &process);
	assert_int_equal(writer.error, 0);
	control_list_write_denied(&writer, &(struct control_denied){exe, "0123", 77, "3 deaths"});
	control_list_write_note(&writer, "there are more");
	assert_int_equal(writer.error, 0);
	assert_int_equal(control_list_parse(&list, writer.text, writer.bytes), 0);
	assert_int_equal(list.processes[0].pid, 7);
	assert_int_equal(list.process_count + writer.left_out, 1 + count);
	assert_true(writer.left_out > 0);
	for (size_t i = 1; i < list.process_count; i++)
		assert_int_equal(strlen(list.processes[i].exe), sizeof(exe) - 1);
	assert_int_equal(list.denied_count, 1);
	assert_string_equal(list.notes[0], "there are more");
	control_list_fini(&list);
	control_list_writer_fini(&writer);
}

/* Whoever hands rows on judges the process that whoever parses them sees. */
static void a_row_is_about_the_process_that_is_parsed(void **state)
{
	static const char text[] = "daemon\0pid=1\0\0"
	                           "process\0pid=11\0exe=/a\0\0"
	                           "\0"
	                           "process\0pid=12\0pid=13\0\0"
	                           "process\0exe=pid=5\0\0"
	                           "process\0\0"
	                           "process\0pid=4294967310\0\0"
	                           "process\0pid=-15\0\0"
	                           "process\0pid= 16\0\0"
	                           "process\0pid=17 \0\0"
	                           "denied\0exe=/a\0\0"
	                           "process\0pid=2147483647\0\0"
	                           "process\0pid=18\0service=cut";
	static const pid_t wanted[] = {11, 0, 0, 0, 0, 0, 0, 0, 2147483647};
	struct control_rows rows = {text, text + sizeof(text)};
	struct control_row row;
	struct control_list list;
	size_t count = 0;

	(void)state;
	while (control_rows_next(&rows, &row)) {
		assert_in_range(count, 0, 8);
		assert_int_equal(row.pid, wanted[count++]);
		assert_int_equal(control_list_parse(&list, row.text, row.bytes), 0);
		assert_int_equal(list.process_count, 1);
		assert_int_equal(list.daemon.pid, 0);
		if (row.pid)
			assert_int_equal(list.processes[0].pid, row.pid);
		control_list_fini(&list);
	}
	assert_int_equal(count, 9);
	/* Without its end the text has no last string. */
	rows = (struct control_rows){text + 15, text + 15 + 7};
	assert_int_equal(control_rows_next(&rows, &row), 0);
}

static struct control_store store_of(const char *text, size_t bytes)
{
	const struct control_rows rows = {text, text + bytes};

	return control_rows_store(&rows);
}

/* Where its profiles are, a sampler says at the beginning, or nobody does. */
static void the_store_is_the_samplers(void **state)
{
	static const char other[] = "process\0store=/etc\0\0daemon\0store=/etc\0",
	                  cut[] = "daemon\0store=/etc";
	const struct control_daemon daemon = {
	    .pid = 1, .store = "/var/lib", .store_depth = 2, .store_since_unix_ns = 7};
	struct control_list_writer writer = {0};

	(void)state;
	control_list_write_daemon(&writer, &daemon);
	assert_int_equal(writer.error, 0);
	const struct control_store store = store_of(writer.text, writer.bytes);
	assert_string_equal(store.path, "/var/lib");
	assert_int_equal(store.depth, 2);
	assert_int_equal(store.since_unix_ns, 7);
	control_list_writer_fini(&writer);
	assert_string_equal(store_of(other, sizeof(other)).path, "");
	assert_string_equal(store_of(cut, sizeof(cut) - 1).path, ""); /* no end: it may go on */
	assert_string_equal(store_of("", 0).path, "");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(all_fields_come_back),
	    cmocka_unit_test(a_newer_server_may_say_more),
	    cmocka_unit_test(what_is_hostile_is_made_harmless),
	    cmocka_unit_test(lists_are_bounded),
	    cmocka_unit_test(what_is_written_is_bounded),
	    cmocka_unit_test(a_process_for_which_there_is_no_room_is_left_out),
	    cmocka_unit_test(a_row_is_about_the_process_that_is_parsed),
	    cmocka_unit_test(the_store_is_the_samplers),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
