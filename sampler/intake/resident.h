/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a process' resident memory consists of: the Rss of all its mappings in /proc/PID/smaps, read in one
 * pass, by kind of mapping. Each mapping has one kind, so the parts add up to the whole exactly. The whole
 * is what smaps_rollup says at the same moment; VmRSS in /proc/PID/status is a counter that each CPU adds
 * to in batches, and differs by up to some hundred KiB.
 *
 * Only what is known of a mapping decides. Which anonymous memory is the allocator's is known of [heap], of
 * mappings that glibc names, and of those in which a sampled block lies that no allocator maps for itself
 * alone. A large block proves nothing about what is around it, since the kernel makes one mapping of adjacent
 * ones: there the blocks' estimated bytes are the allocator's, and the rest is not known.
 */
#ifndef SAMPLER_INTAKE_RESIDENT_H
#define SAMPLER_INTAKE_RESIDENT_H

#include "sampler/intake/smaps.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

enum resident_kind {
	RESIDENT_HEAP,      /* anonymous, known to be the allocator's: see above */
	RESIDENT_ANONYMOUS, /* other private anonymous memory */
	RESIDENT_CODE, /* program and libraries: files with an executable mapping, and their .bss behind it */
	RESIDENT_FILES,  /* other files */
	RESIDENT_SHARED, /* shared memory: memfd, shm_open, System V, shared anonymous */
	RESIDENT_STACKS, /* [stack], and mappings at whose end a thread has its descriptor */
	RESIDENT_OURS,   /* heaptap's: the region, the library and its tables */
	RESIDENT_KERNEL, /* [vdso] and the like */
	RESIDENT_KINDS
};

struct resident_reader;

/* The facts that are known besides the text. */
struct resident_facts {
	const char *library; /* name of our library's file */
	uint64_t region_ino; /* of the region's memfd; 0: unknown */
	/* memory that our library has mapped for itself, in one or two parts; 0 and 0: unknown */
	uint64_t own_start, own_end, grown_start, grown_end;
	const uint64_t *descriptors; /* of threads, ascending, see thread_facts.h */
	size_t descriptor_count;
	/* Calls resident_block() for each sampled block, once the text has been read; NULL if no block is
	 * known. */
	void (*each_block)(void *context, struct resident_reader *reader);
	void *context;
};

struct resident {
	uint64_t bytes[RESIDENT_KINDS];
	uint64_t total_bytes, swap_bytes; /* swap: not resident, of private memory */
	/* The part of RESIDENT_ANONYMOUS, before the blocks are known, that was written to and is in no
	 * other process: it has no page of a parent that was not written to since the fork, and none of a
	 * child. */
	uint64_t alone_bytes;
	uint64_t mappings, threads; /* threads: with their stacks in RESIDENT_STACKS */
	bool has_region;            /* the region of the facts is mapped */
	/* Only the kernel's counters could be read: there are no kinds but RESIDENT_ANONYMOUS, _FILES and
	 * _SHARED. */
	bool counters;
};

/* From this size on an allocator may map a block for itself alone: glibc's M_MMAP_THRESHOLD is the
 * smallest such size. */
enum { RESIDENT_LARGE_BYTES = 128 << 10 };

/* An anonymous mapping with an unknown purpose. */
struct resident_area {
	uint64_t start, end, rss_bytes;
	bool small;         /* a small block lies in it */
	double large_bytes; /* estimated bytes of its large blocks */
};

/* "program and libraries", and the word for it in a profile's comment. */
const char *resident_kind_name(enum resident_kind kind);
const char *resident_kind_word(enum resident_kind kind);

/* A reader of the text. Pure, except for its memory: at most as many areas as there are mappings. */
struct resident_reader {
	struct smaps smaps;
	const struct resident_facts *facts;
	struct resident *resident;
	/* The mappings of one file, one behind the other. Their kind is known at their end. */
	struct {
		bool open, code, ours;
		bool data; /* the last mapping is private and writable: .bss may follow */
		uint64_t ino, end, rss_bytes, bss_bytes;
		uint32_t major, minor;
	} file;
	struct resident_area *areas; /* owned; ascending */
	size_t area_count, area_room, area_last;
	bool no_memory;
};

/* Borrows the facts. resident_end must follow. */
void resident_begin(
    struct resident_reader *reader, const struct resident_facts *facts, struct resident *resident);
void resident_feed(struct resident_reader *reader, const char *bytes, size_t count);
/* Asks for the blocks. error: why the text is incomplete, or 0. Returns `error`, -ENOMEM, or -EPROTO as
 * smaps_end() does. */
int resident_end(struct resident_reader *reader, int error);

/* A sampled block lies at this address. weight_bytes: the estimated bytes that the sample stands for. */
void resident_block(
    struct resident_reader *reader, uint64_t address, uint64_t size_bytes, double weight_bytes);

/*
 * Reads a process, with the descriptors of its threads unless the facts have some. The kernel walks the
 * page tables of all mappings, about 80 ns for each resident page and 3 us for each mapping, and holds the
 * process' mmap_lock for one mapping, or a few small ones, at a time. If that would take more than most_ns
 * of CPU time (0: no bound), only the counters of /proc/PID/status are read. Returns 0 or -errno; -ESRCH:
 * it has no memory (any more), or not the region of the facts.
 */
int resident_read(struct resident *resident, pid_t pid, const struct resident_facts *facts, uint64_t most_ns);

/* Fills in the counters from the text of /proc/PID/status, which ends with a NUL. Pure. False if the text
 * has no counters. */
bool resident_parse_status(struct resident *resident, const char *text);

#endif
