/* SPDX-License-Identifier: Apache-2.0 */
#include "sampler/perf/record.h"

#include "pprof/table/array.h"

#include <errno.h>
#include <string.h>

enum {
	/* header, ip, pid and tid, then the time */
	SAMPLE_TIME_AT = sizeof(struct perf_event_header) + 2 * sizeof(uint64_t),
	/* sample_id of everything but samples: pid and tid, time, cpu or id */
	TRAILER_BYTES = 3 * sizeof(uint64_t),
	TRAILER_TIME_BACK = 2 * sizeof(uint64_t), /* from the end */
};

struct cursor {
	const unsigned char *at, *end;
	bool bad;
};

static uint64_t take_u64(struct cursor *c)
{
	uint64_t value = 0;

	if (c->end - c->at < 8)
		c->bad = true;
	else
		memcpy(&value, c->at, 8);
	c->at += c->bad ? 0 : 8;
	return value;
}

static uint32_t take_u32(struct cursor *c)
{
	uint32_t value = 0;

	if (c->end - c->at < 4)
		c->bad = true;
	else
		memcpy(&value, c->at, 4);
	c->at += c->bad ? 0 : 4;
	return value;
}

static const unsigned char *take_bytes(struct cursor *c, uint64_t bytes)
{
	const unsigned char *start = c->at;

	if ((uint64_t)(c->end - c->at) < bytes) {
		c->bad = true;
		return NULL;
	}
	c->at += bytes;
	return start;
}

/* ip, pid/tid, time, cpu, regs, stack: in this order whatever the bits' order (perf_output_sample). */
static void parse_sample(struct cursor *c, uint64_t regs_mask, struct record *r)
{
	r->kind = RECORD_SAMPLE;
	take_u64(c);
	r->pid = take_u32(c);
	r->tid = take_u32(c);
	r->time_ns = take_u64(c);
	take_u64(c);
	r->regs_abi = take_u64(c);
	if (r->regs_abi != PERF_SAMPLE_REGS_ABI_NONE) {
		r->regs_count = (size_t)__builtin_popcountll(regs_mask);
		r->regs = (const uint64_t *)(const void *)take_bytes(c, r->regs_count * 8);
	}
	r->stack_want = take_u64(c);
	if (r->stack_want == 0)
		return;
	r->stack = take_bytes(c, r->stack_want);
	r->stack_bytes = take_u64(c);
	if (r->stack_bytes > r->stack_want)
		c->bad = true;
}

static const struct record_source *find_source(const struct record_layouts *layouts, uint64_t id)
{
	size_t low = ARRAY_LOWER_BOUND(layouts->sources, layouts->count, id, id);

	return low < layouts->count && layouts->sources[low].id == id ? &layouts->sources[low] : NULL;
}

static void take_user(struct cursor *c, uint64_t sample_type, uint64_t regs_mask, struct record *r)
{
	if (sample_type & PERF_SAMPLE_REGS_USER) {
		r->regs_abi = take_u64(c);
		if (r->regs_abi != PERF_SAMPLE_REGS_ABI_NONE) {
			r->regs_count = (size_t)__builtin_popcountll(regs_mask);
			r->regs = (const uint64_t *)(const void *)take_bytes(c, r->regs_count * 8);
		}
	}
	if (sample_type & PERF_SAMPLE_STACK_USER && (r->stack_want = take_u64(c)) != 0) {
		r->stack = take_bytes(c, r->stack_want);
		r->stack_bytes = take_u64(c);
		if (r->stack_bytes > r->stack_want)
			c->bad = true;
	}
}

/* ip, tid, time, addr, id, period, chain, regs, stack, page size: in this order whatever the bits' order. */
static void parse_event(struct cursor *c, const struct record_layouts *layouts, struct record *r)
{
	r->kind = RECORD_SAMPLE;
	r->ip = take_u64(c);
	r->pid = take_u32(c);
	r->tid = take_u32(c);
	r->time_ns = take_u64(c);
	r->address = take_u64(c);
	r->source = find_source(layouts, take_u64(c));
	if (!r->source)
		return;
	uint64_t type = r->source->sample_type;
	if (type & PERF_SAMPLE_PERIOD)
		r->period = take_u64(c);
	if (type & PERF_SAMPLE_CALLCHAIN) {
		uint64_t count = take_u64(c);

		if (count > (uint64_t)(c->end - c->at) / 8)
			c->bad = true;
		r->chain = (const uint64_t *)(const void *)take_bytes(c, c->bad ? 0 : count * 8);
		r->chain_count = c->bad ? 0 : count;
	}
	take_user(c, type, layouts->regs_mask, r);
	if (type & PERF_SAMPLE_DATA_PAGE_SIZE)
		r->data_page_bytes = take_u64(c);
}

static void parse_throttle(
    struct cursor *c, enum record_kind kind, const struct record_layouts *layouts, struct record *r)
{
	r->kind = kind;
	take_u64(c);
	r->source = layouts ? find_source(layouts, take_u64(c)) : NULL;
}

/* The path's terminator must be inside the record, before the sample_id trailer (TRAILER_BYTES).
 * */
static const char *take_path(struct cursor *c)
{
	const char *path = (const char *)c->at;

	if (c->end - c->at < TRAILER_BYTES || !memchr(path, '\0', (size_t)(c->end - c->at) - TRAILER_BYTES)) {
		c->bad = true;
		return "";
	}
	return path;
}

static void parse_mmap(struct cursor *c, uint16_t misc, struct record *r)
{
	r->kind = RECORD_MMAP;
	r->pid = take_u32(c);
	r->tid = take_u32(c);
	r->start = take_u64(c);
	r->length = take_u64(c);
	r->file_offset = take_u64(c);
	const unsigned char *identity = take_bytes(c, 24);
	if (identity && misc & PERF_RECORD_MISC_MMAP_BUILD_ID) {
		r->build_id_bytes = identity[0] <= sizeof(r->build_id) ? identity[0] : 0;
		memcpy(r->build_id, identity + 4, r->build_id_bytes);
	} else if (identity) {
		memcpy(&r->major, identity, 4);
		memcpy(&r->minor, identity + 4, 4);
		memcpy(&r->ino, identity + 8, 8);
	}
	r->protection = take_u32(c);
	take_u32(c);
	r->path = take_path(c);
}

static void parse_task(struct cursor *c, enum record_kind kind, struct record *r)
{
	r->kind = kind;
	r->pid = take_u32(c);
	r->parent_pid = take_u32(c);
	r->tid = take_u32(c);
	r->parent_tid = take_u32(c);
	r->time_ns = take_u64(c);
}

size_t record_time_at(const struct perf_event_header *header)
{
	if (header->type == PERF_RECORD_SAMPLE)
		return header->size >= SAMPLE_TIME_AT + sizeof(uint64_t) ? SAMPLE_TIME_AT : 0;
	return header->size >= sizeof(*header) + TRAILER_BYTES ? header->size - TRAILER_TIME_BACK : 0;
}

static uint64_t time_of(const void *data, size_t at)
{
	uint64_t time = 0;

	if (at)
		memcpy(&time, (const unsigned char *)data + at, sizeof(time));
	return time;
}

static int parse(const void *data, size_t bytes, uint64_t regs_mask, const struct record_layouts *layouts,
    struct record *record)
{
	struct perf_event_header header;

	memset(record, 0, sizeof(*record));
	record->kind = RECORD_OTHER;
	record->path = "";
	if (bytes < sizeof(header))
		return -EBADMSG;
	memcpy(&header, data, sizeof(header));
	if (header.size != bytes)
		return -EBADMSG;
	struct cursor c = {
	    (const unsigned char *)data + sizeof(header), (const unsigned char *)data + bytes, false};
	if (header.type != PERF_RECORD_SAMPLE)
		record->time_ns = time_of(data, record_time_at(&header));
	switch (header.type) {
	case PERF_RECORD_SAMPLE:
		if (layouts)
			parse_event(&c, layouts, record);
		else
			parse_sample(&c, regs_mask, record);
		break;
	case PERF_RECORD_MMAP2:
		parse_mmap(&c, header.misc, record);
		break;
	case PERF_RECORD_COMM:
		record->kind = RECORD_COMM;
		record->pid = take_u32(&c);
		record->tid = take_u32(&c);
		record->exec = header.misc & PERF_RECORD_MISC_COMM_EXEC;
		record->path = take_path(&c);
		break;
	case PERF_RECORD_FORK:
		parse_task(&c, RECORD_FORK, record);
		break;
	case PERF_RECORD_EXIT:
		parse_task(&c, RECORD_EXIT, record);
		break;
	case PERF_RECORD_LOST:
		record->kind = RECORD_LOST;
		take_u64(&c);
		record->lost = take_u64(&c);
		break;
	case PERF_RECORD_THROTTLE:
		parse_throttle(&c, RECORD_THROTTLE, layouts, record);
		break;
	case PERF_RECORD_UNTHROTTLE:
		parse_throttle(&c, RECORD_UNTHROTTLE, layouts, record);
		break;
	default:
		break;
	}
	return c.bad ? -EBADMSG : 0;
}

int record_parse(const void *data, size_t bytes, uint64_t regs_mask, struct record *record)
{
	return parse(data, bytes, regs_mask, NULL, record);
}

int record_parse_event(
    const void *data, size_t bytes, const struct record_layouts *layouts, struct record *record)
{
	return parse(data, bytes, layouts->regs_mask, layouts, record);
}
