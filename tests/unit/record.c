/* SPDX-License-Identifier: Apache-2.0 */
/* arm64: qemu-aarch64 runs this test, too */
/* perf records as the kernel writes them, cut off, lengthened and made up. */
#include "sampler/perf/record.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { REGS = 3 };
static const uint64_t regs_mask = 0x7;

struct bytes {
	unsigned char data[4096];
	size_t count;
};

static void add(struct bytes *b, const void *data, size_t count)
{
	memcpy(b->data + b->count, data, count);
	b->count += count;
}

static void add_u64(struct bytes *b, uint64_t value)
{
	add(b, &value, 8);
}

static void add_u32(struct bytes *b, uint32_t value)
{
	add(b, &value, 4);
}

static void begin(struct bytes *b, uint32_t type, uint16_t misc)
{
	const struct perf_event_header header = {.type = type, .misc = misc};

	b->count = 0;
	add(b, &header, sizeof(header));
}

static void end(struct bytes *b, bool trailer)
{
	if (trailer) {
		add_u32(b, 71);
		add_u32(b, 72);
		add_u64(b, 7300);
		add_u64(b, 1);
	}
	uint16_t size = (uint16_t)b->count;
	memcpy(b->data + offsetof(struct perf_event_header, size), &size, 2);
}

static void make_sample(struct bytes *b)
{
	begin(b, PERF_RECORD_SAMPLE, 0);
	add_u64(b, 0x1234);
	add_u32(b, 10);
	add_u32(b, 11);
	add_u64(b, 5555);
	add_u64(b, 0);
	add_u64(b, PERF_SAMPLE_REGS_ABI_64);
	for (uint64_t i = 0; i < REGS; i++)
		add_u64(b, 100 + i);
	add_u64(b, 64);
	for (uint64_t i = 0; i < 8; i++)
		add_u64(b, i);
	add_u64(b, 40);
	end(b, false);
}

static void make_mmap(struct bytes *b, bool build_id)
{
	unsigned char identity[24] = {1, 0, 0, 0, 2, 0, 0, 0, 33};

	begin(b, PERF_RECORD_MMAP2, build_id ? PERF_RECORD_MISC_MMAP_BUILD_ID : 0);
	add_u32(b, 10);
	add_u32(b, 11);
	add_u64(b, 0x7000);
	add_u64(b, 0x2000);
	add_u64(b, 0x1000);
	if (build_id)
		identity[0] = 20;
	add(b, identity, 24);
	add_u32(b, 5);
	add_u32(b, 0);
	add(b, "/lib/x.so\0\0\0\0\0\0\0", 16);
	end(b, true);
}

static void make_task(struct bytes *b, uint32_t type)
{
	begin(b, type, 0);
	for (uint32_t i = 1; i <= 4; i++)
		add_u32(b, i);
	add_u64(b, 99);
	end(b, true);
}

static void make_comm(struct bytes *b, uint16_t misc)
{
	begin(b, PERF_RECORD_COMM, misc);
	add_u32(b, 10);
	add_u32(b, 11);
	add(b, "name\0\0\0\0", 8);
	end(b, true);
}

static void make_lost(struct bytes *b)
{
	begin(b, PERF_RECORD_LOST, 0);
	add_u64(b, 1);
	add_u64(b, 42);
	end(b, true);
}

static int parse(const struct bytes *b, struct record *record)
{
	return record_parse(b->data, b->count, regs_mask, record);
}

static void samples(void **unused)
{
	struct bytes b;
	struct record r;

	make_sample(&b);
	assert_int_equal(0, parse(&b, &r));
	assert_int_equal(RECORD_SAMPLE, r.kind);
	assert_int_equal(10, r.pid);
	assert_int_equal(11, r.tid);
	assert_int_equal(5555, r.time_ns);
	assert_int_equal(REGS, r.regs_count);
	assert_int_equal(102, r.regs[2]);
	assert_int_equal(64, r.stack_want);
	assert_int_equal(40, r.stack_bytes);
	assert_int_equal(1, ((const uint64_t *)r.stack)[1]);
}

static void others(void **unused)
{
	struct bytes b;
	struct record r;

	make_mmap(&b, false);
	assert_int_equal(0, parse(&b, &r));
	assert_int_equal(RECORD_MMAP, r.kind);
	assert_string_equal("/lib/x.so", r.path);
	assert_int_equal(0x7000, r.start);
	assert_int_equal(33, r.ino);
	assert_int_equal(7300, r.time_ns);
	make_mmap(&b, true);
	assert_int_equal(0, parse(&b, &r));
	assert_int_equal(20, r.build_id_bytes);
	make_comm(&b, PERF_RECORD_MISC_COMM_EXEC);
	assert_int_equal(0, parse(&b, &r));
	assert_true(r.kind == RECORD_COMM && r.exec && r.pid == 10);
	make_comm(&b, 0);
	assert_int_equal(0, parse(&b, &r));
	assert_false(r.exec);
	make_task(&b, PERF_RECORD_FORK);
	assert_int_equal(0, parse(&b, &r));
	assert_true(
	    r.kind == RECORD_FORK && r.pid == 1 && r.parent_pid == 2 && r.tid == 3 && r.parent_tid == 4);
	make_task(&b, PERF_RECORD_EXIT);
	assert_int_equal(0, parse(&b, &r));
	assert_int_equal(RECORD_EXIT, r.kind);
	make_lost(&b);
	assert_int_equal(0, parse(&b, &r));
	assert_true(r.kind == RECORD_LOST && r.lost == 42);
	begin(&b, 4711, 0);
	end(&b, true);
	assert_int_equal(0, parse(&b, &r));
	assert_int_equal(RECORD_OTHER, r.kind);
}

/* In memory of exactly that size, so that a sanitizer sees any byte too far. */
static int parse_exactly(const unsigned char *data, size_t count, uint64_t mask)
{
	struct record r;
	uint64_t *copy = malloc(count ? count : 1);

	memcpy(copy, data, count);
	int result = record_parse(copy, count, mask, &r);
	if (result == 0 && r.kind == RECORD_SAMPLE) {
		const unsigned char *low = (const unsigned char *)copy, *high = low + count;

		if (r.stack)
			assert_true((const unsigned char *)r.stack >= low &&
			    (const unsigned char *)r.stack + r.stack_bytes <= high);
		if (r.regs)
			assert_true((const unsigned char *)(r.regs + r.regs_count) <= high);
	}
	free(copy);
	return result;
}

/* Cut off at any byte, with the header's size as it was or as it is: refused, or all that is named is there.
 * */
static void cut_off(void **unused)
{
	struct bytes b;

	for (int kind = 0; kind < 6; kind++) {
		if (kind == 0)
			make_sample(&b);
		else if (kind <= 2)
			make_mmap(&b, kind == 2);
		else if (kind == 3)
			make_comm(&b, 0);
		else if (kind == 4)
			make_task(&b, PERF_RECORD_FORK);
		else
			make_lost(&b);
		for (size_t count = 0; count < b.count; count++) {
			assert_int_equal(-EBADMSG, parse_exactly(b.data, count, regs_mask));
			if (count < 8)
				continue;
			unsigned char cut[4096];
			memcpy(cut, b.data, count);
			uint16_t size = (uint16_t)count;
			memcpy(cut + offsetof(struct perf_event_header, size), &size, 2);
			parse_exactly(cut, count, regs_mask);
		}
	}
}

static void made_up(void **unused)
{
	uint64_t state = 88172645463325252u;

	for (int i = 0; i < 300000; i++) {
		struct bytes b;

		if (i % 2)
			make_sample(&b);
		else
			make_mmap(&b, i % 4 == 0);
		for (int changes = 0; changes < 4; changes++) {
			state ^= state << 13;
			state ^= state >> 7;
			state ^= state << 17;
			b.data[state % b.count] = (unsigned char)(state >> 32);
		}
		parse_exactly(b.data, b.count, state >> 40 & 0xffffff);
	}
}

/* A stack longer than what was asked for, more registers than there are. */
static void impossible_sizes(void **unused)
{
	struct bytes b;

	make_sample(&b);
	uint64_t huge = 65;
	memcpy(b.data + b.count - 8, &huge, 8);
	assert_int_equal(-EBADMSG, parse_exactly(b.data, b.count, regs_mask));
	make_sample(&b);
	assert_int_equal(-EBADMSG, parse_exactly(b.data, b.count, UINT64_MAX));
	huge = UINT64_MAX;
	memcpy(b.data + b.count - 8 - 64 - 8, &huge, 8);
	assert_int_equal(-EBADMSG, parse_exactly(b.data, b.count, regs_mask));
}

/* ---- rings of several events */

static const struct record_source sources[] = {
    {.id = 5, .sample_type = RECORD_EVENT_TYPE, .event = 1},
    {.id = 70, .sample_type = RECORD_EVENT_TYPE | PERF_SAMPLE_REGS_USER | PERF_SAMPLE_STACK_USER, .event = 2},
    {.id = 900, .sample_type = RECORD_EVENT_TYPE | RECORD_EVENT_EXTRA, .event = 3},
};
static const struct record_layouts layouts = {.regs_mask = 0x7, .sources = sources, .count = 3};

static void make_event(struct bytes *b, uint64_t id, uint64_t extra)
{
	begin(b, PERF_RECORD_SAMPLE, 0);
	add_u64(b, 0x1234);
	add_u32(b, 10);
	add_u32(b, 11);
	add_u64(b, 5555);
	add_u64(b, 0xabc);
	add_u64(b, id);
	if (extra & PERF_SAMPLE_PERIOD)
		add_u64(b, 17);
	if (extra & PERF_SAMPLE_CALLCHAIN) {
		add_u64(b, 2);
		add_u64(b, (uint64_t)PERF_CONTEXT_KERNEL);
		add_u64(b, 0xffffffff81000000u);
	}
	if (extra & PERF_SAMPLE_REGS_USER) {
		add_u64(b, PERF_SAMPLE_REGS_ABI_64);
		for (uint64_t i = 0; i < REGS; i++)
			add_u64(b, 100 + i);
	}
	if (extra & PERF_SAMPLE_STACK_USER) {
		add_u64(b, 16);
		add_u64(b, 1);
		add_u64(b, 2);
		add_u64(b, 8);
	}
	if (extra & PERF_SAMPLE_DATA_PAGE_SIZE)
		add_u64(b, 2 << 20);
	end(b, false);
}

/* Parsed in memory of just its size, for the sanitizers to see what is read beyond it. */
static int parse_event_exactly(const void *data, size_t count, struct record *r)
{
	void *copy = malloc(count ? count : 1);

	memcpy(copy, data, count);
	int result = record_parse_event(copy, count, &layouts, r);
	free(copy);
	return result;
}

static void events(void **unused)
{
	struct bytes b;
	struct record r;

	for (size_t i = 0; i < 3; i++) {
		uint64_t extra = sources[i].sample_type & ~(uint64_t)RECORD_EVENT_TYPE;

		make_event(&b, sources[i].id, extra);
		assert_int_equal(0, record_parse_event(b.data, b.count, &layouts, &r));
		assert_int_equal(RECORD_SAMPLE, r.kind);
		assert_ptr_equal(&sources[i], r.source);
		assert_true(
		    r.ip == 0x1234 && r.pid == 10 && r.tid == 11 && r.time_ns == 5555 && r.address == 0xabc);
		assert_int_equal(extra & PERF_SAMPLE_PERIOD ? 17 : 0, r.period);
		assert_int_equal(extra & PERF_SAMPLE_CALLCHAIN ? 2 : 0, r.chain_count);
		assert_int_equal(extra & PERF_SAMPLE_REGS_USER ? REGS : 0, r.regs_count);
		assert_int_equal(extra & PERF_SAMPLE_STACK_USER ? 8 : 0, r.stack_bytes);
		assert_int_equal(extra & PERF_SAMPLE_DATA_PAGE_SIZE ? 2 << 20 : 0, r.data_page_bytes);
		for (size_t cut = 8; cut < b.count; cut++) {
			struct bytes c = b;

			c.count = cut;
			end(&c, false);
			assert_int_equal(-EBADMSG, parse_event_exactly(c.data, c.count, &r));
		}
	}
	make_event(&b, 71, 0);
	assert_int_equal(0, record_parse_event(b.data, b.count, &layouts, &r));
	assert_null(r.source);
}

static void events_impossible(void **unused)
{
	struct bytes b;
	struct record r;
	uint64_t huge = UINT64_MAX;

	make_event(&b, 900, RECORD_EVENT_EXTRA);
	memcpy(b.data + 8 + 40 + 8, &huge, 8); /* frames in the call chain */
	assert_int_equal(-EBADMSG, parse_event_exactly(b.data, b.count, &r));
	make_event(&b, 900, RECORD_EVENT_EXTRA);
	memcpy(b.data + b.count - 16, &huge, 8); /* valid bytes of the stack */
	assert_int_equal(-EBADMSG, parse_event_exactly(b.data, b.count, &r));
}

static void throttled(void **unused)
{
	struct bytes b;
	struct record r;

	begin(&b, PERF_RECORD_THROTTLE, 0);
	add_u64(&b, 1);
	add_u64(&b, 70);
	add_u64(&b, 70);
	end(&b, true);
	assert_int_equal(0, record_parse_event(b.data, b.count, &layouts, &r));
	assert_int_equal(RECORD_THROTTLE, r.kind);
	assert_int_equal(2, r.source->event);
	assert_int_equal(0, parse(&b, &r));
	assert_null(r.source);
}

/* rings merge by the time, which they look for in the header alone. */
static void the_time_is_where_the_header_says(void **unused)
{
	const struct perf_event_header short_sample = {.type = PERF_RECORD_SAMPLE, .size = 24},
	                               short_other = {.type = PERF_RECORD_FORK, .size = 24};
	struct bytes all[5];

	make_sample(&all[0]);
	make_mmap(&all[1], true);
	make_comm(&all[2], 0);
	make_lost(&all[3]);
	make_event(&all[4], 900, RECORD_EVENT_EXTRA);
	for (size_t i = 0; i < 5; i++) {
		struct perf_event_header header;
		struct record r;
		uint64_t time;

		memcpy(&header, all[i].data, sizeof(header));
		assert_int_equal(0,
		    i == 4 ? record_parse_event(all[i].data, all[i].count, &layouts, &r)
		           : parse(&all[i], &r));
		assert_in_range(record_time_at(&header), 8, all[i].count - sizeof(time));
		memcpy(&time, all[i].data + record_time_at(&header), sizeof(time));
		assert_true(time == r.time_ns && time != 0);
	}
	assert_int_equal(record_time_at(&short_sample), 0);
	assert_int_equal(record_time_at(&short_other), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(samples),
	    cmocka_unit_test(others),
	    cmocka_unit_test(cut_off),
	    cmocka_unit_test(made_up),
	    cmocka_unit_test(impossible_sizes),
	    cmocka_unit_test(events),
	    cmocka_unit_test(events_impossible),
	    cmocka_unit_test(throttled),
	    cmocka_unit_test(the_time_is_where_the_header_says),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
