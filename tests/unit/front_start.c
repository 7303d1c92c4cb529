/* SPDX-License-Identifier: Apache-2.0 */
/* The line at the start of `heaptap record`. */
#include "sampler/cmd/record/front.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

static const char *line(const struct options *options, bool heap)
{
	static char text[2048];

	front_describe_start(
	    options, &(struct front_start){.command = 4711, .heap = heap}, text, sizeof(text));
	return text;
}

static void what_where_and_how(void **state)
{
	struct options options = {.record.heap.period_bytes = 512 << 10};

	(void)state;
	assert_string_equal(line(&options, true),
	    "recording pid 4711 (a sample per 512 KiB) to heaptap.*.pb.gz\n"
	    "a snapshot of it now: heaptap snapshot 4711");
	options.record.heap.period_bytes = 1;
	options.output = "out/";
	options.record.heap.paused = true;
	assert_string_equal(line(&options, true),
	    "recording pid 4711 (every allocation, from its heaptap_start() on) to out/heaptap.*.pb.gz\n"
	    "a snapshot of it now: heaptap snapshot 4711");
	options.record.heap.period_bytes = 1000;
	options.record.heap.paused = false;
	options.output = "x/%t-%p.%h/a%%.gz";
	options.record.event_texts[options.record.event_count++] = "cpu-clock@99";
	assert_string_equal(line(&options, true),
	    "recording pid 4711 (a sample per 1000 B, cpu-clock@99) to x/*-*/a%.gz\n"
	    "a snapshot of it now: heaptap snapshot 4711");
}

static void nobody_can_ask(void **state)
{
	const struct options options = {.record.heap.period_bytes = 512 << 10};
	const struct front_start start = {.command = 4711, .heap = true, .socket_error = -EACCES};
	char text[2048];

	(void)state;
	front_describe_start(&options, &start, text, sizeof(text));
	assert_string_equal(text,
	    "recording pid 4711 (a sample per 512 KiB) to heaptap.*.pb.gz\n"
	    "no snapshot of it can be asked for, without a control socket: Permission denied");
}

static void events_alone(void **state)
{
	struct options options = {.record.heap.period_bytes = 512 << 10, .output = "x.gz"};

	(void)state;
	options.record.event_texts[options.record.event_count++] = "cpu-clock";
	options.record.event_texts[options.record.event_count++] = "page-faults/1";
	assert_string_equal(line(&options, false),
	    "recording pid 4711 (cpu-clock, page-faults/1) to x.gz\n"
	    "a snapshot of it now: heaptap snapshot 4711");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(what_where_and_how),
	    cmocka_unit_test(nobody_can_ask),
	    cmocka_unit_test(events_alone),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
