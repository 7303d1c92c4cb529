/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One perf record: bytes in, fields out. Pure; every length is checked, so that tests and fuzzers can feed it.
 *
 * Layout: perf_event_open(2) and include/uapi/linux/perf_event.h, for sample_type RECORD_SAMPLE_TYPE with sample_id_all.
 */
#ifndef SAMPLER_RECORD_H
#define SAMPLER_RECORD_H

#include <linux/perf_event.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define RECORD_SAMPLE_TYPE                                                                                             \
	(PERF_SAMPLE_IP | PERF_SAMPLE_TID | PERF_SAMPLE_TIME | PERF_SAMPLE_CPU | PERF_SAMPLE_REGS_USER |               \
	    PERF_SAMPLE_STACK_USER)

enum { RECORD_REGS_MAX = 64, RECORD_PATH_BYTES = 4096 };

enum record_kind {
	RECORD_SAMPLE,
	RECORD_MMAP,
	RECORD_COMM,
	RECORD_FORK,
	RECORD_EXIT,
	RECORD_LOST,
	RECORD_OTHER,
};

struct record {
	enum record_kind kind;
	uint32_t pid, tid;
	uint64_t time_ns; /* of the clock that the event was opened with; 0 if the record has none */

	/* SAMPLE: pointers into the record */
	uint64_t regs_abi;    /* PERF_SAMPLE_REGS_ABI_64, or NONE for a thread without user registers */
	const uint64_t *regs; /* one per bit of the mask, rising */
	size_t regs_count;
	const unsigned char *stack;
	size_t stack_bytes; /* valid */
	size_t stack_want;  /* asked for */

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

/* Parses `bytes` of one record (8-byte aligned). regs_mask: the event's sample_regs_user. Returns 0 or -EBADMSG. */
int record_parse(const void *data, size_t bytes, uint64_t regs_mask, struct record *record);

#endif
