/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Parses one perf record: bytes in, fields out. Pure, and every length is checked, so that tests and fuzzers
 * can feed it.
 *
 * Layout: perf_event_open(2) and include/uapi/linux/perf_event.h, for sample_type RECORD_SAMPLE_TYPE with
 * sample_id_all.
 */
#ifndef SAMPLER_PERF_RECORD_H
#define SAMPLER_PERF_RECORD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <linux/perf_event.h>

#define RECORD_SAMPLE_TYPE                                                                               \
	(PERF_SAMPLE_IP | PERF_SAMPLE_TID | PERF_SAMPLE_TIME | PERF_SAMPLE_CPU | PERF_SAMPLE_REGS_USER | \
	    PERF_SAMPLE_STACK_USER)

enum record_kind {
	RECORD_SAMPLE,
	RECORD_MMAP,
	RECORD_COMM,
	RECORD_FORK,
	RECORD_EXIT,
	RECORD_LOST,
	RECORD_THROTTLE, /* the kernel stops an event until the next tick */
	RECORD_UNTHROTTLE,
	RECORD_OTHER,
};

struct record {
	enum record_kind kind;
	uint32_t pid, tid;
	uint64_t time_ns; /* of the clock that the event was opened with; 0 if the record has none */

	/* SAMPLE: pointers into the record */
	uint64_t regs_abi;    /* PERF_SAMPLE_REGS_ABI_64, or NONE for a thread without user registers */
	const uint64_t *regs; /* one per bit of the mask, ascending */
	size_t regs_count;
	const unsigned char *stack;
	size_t stack_bytes; /* valid */
	size_t stack_want;  /* asked for */

	/* SAMPLE, record_parse_event only */
	/* of SAMPLE and THROTTLE; NULL if the event is not ours, and then the fields below are not set */
	const struct record_source *source;
	uint64_t ip, address, period; /* 0 where not asked for */
	uint64_t data_page_bytes;     /* size of the page at `address`; 0: none, or not asked for */
	const uint64_t *chain;        /* call chain as the kernel gives it, PERF_CONTEXT_* included */
	size_t chain_count;

	/* MMAP (MMAP2) */
	uint64_t start, length, file_offset, ino;
	uint32_t major, minor, protection;
	uint8_t build_id[20];
	uint8_t build_id_bytes; /* 0: none, then major, minor and ino are set */
	const char *path;       /* NUL-terminated within the record */

	/* COMM */
	bool exec;

	/* FORK, EXIT */
	uint32_t parent_pid, parent_tid;

	/* LOST */
	uint64_t lost;
};

/* One of our events, and the fields of its samples. */
struct record_source {
	uint64_t id; /* the kernel's number of the event */
	uint64_t sample_type;
	uint32_t event; /* the caller's own number */
};

/* The layouts of the records in one ring. */
struct record_layouts {
	uint64_t regs_mask;
	const struct record_source *sources; /* by id, ascending */
	size_t count;
};

/*
 * The fields that every event of record_parse_event() must have, so that the id is always at the same place;
 * and the fields that it may have besides.
 */
#define RECORD_EVENT_TYPE \
	(PERF_SAMPLE_IP | PERF_SAMPLE_TID | PERF_SAMPLE_TIME | PERF_SAMPLE_ADDR | PERF_SAMPLE_ID)
#define RECORD_EVENT_EXTRA                                                                             \
	(PERF_SAMPLE_PERIOD | PERF_SAMPLE_CALLCHAIN | PERF_SAMPLE_REGS_USER | PERF_SAMPLE_STACK_USER | \
	    PERF_SAMPLE_DATA_PAGE_SIZE)

/* The same as record_parse() for rings into which events of several kinds write, with sample types of
 * RECORD_EVENT_TYPE and some of RECORD_EVENT_EXTRA. Returns 0 or -EBADMSG. */
int record_parse_event(
    const void *data, size_t bytes, const struct record_layouts *layouts, struct record *record);

/* The offset of the time (8 bytes) in a record of either kind, found by its header alone; 0 if it has no
 * time. */
size_t record_time_at(const struct perf_event_header *header);

/* Parses `bytes` of one record (8-byte aligned). regs_mask: the event's sample_regs_user. Returns 0 or
 * -EBADMSG. */
int record_parse(const void *data, size_t bytes, uint64_t regs_mask, struct record *record);

#endif
