/* SPDX-License-Identifier: Apache-2.0 */
/* The buffers of a region: stacks that hooks have copied, until the sampler takes them. */
#ifndef PROTO_BUFFER_H
#define PROTO_BUFFER_H

#include "proto/region.h"

/* Registers of a copied sample: the callee-saved ones, stack pointer and program counter. No others, because
 * each cache line of a buffer moves from one CPU to another and back. x86-64: rbx rbp rsp r12 r13 r14 r15
 * rip; aarch64: x19 to x30, sp, pc. */
enum {
	BUFFER_REGS = 14,
};

/* A stack taken by the copy backend. Its bit in the bitmap of its class is set while it is taken; `word` goes
 * FREE -> WRITING -> FULL and, by the sampler, back to FREE. A thread that dies while it writes blocks no
 * other: the sampler frees the buffers that a dead process was writing. */
struct region_buffer {
	_Atomic uint32_t word; /* buffer_word() */
	uint32_t place;
	struct region_sample sample;
	uint32_t stack_bytes; /* copied */
	uint16_t content;     /* enum buffer_content */
	uint16_t flags;       /* enum slot_flags */
	uint64_t regs[BUFFER_REGS];
	uint64_t unmaps; /* of the place, then */
	uint64_t reserved[2];
	/* the stack's bytes follow */
};

enum buffer_content {
	BUFFER_STACK = 0,       /* the stack's innermost bytes */
	BUFFER_WHOLE_STACK = 1, /* all of them: the copy reaches the known end of the stack */
	/* of a walked sample: where the walk has led, the hook's own frame first. `regs` has nothing */
	BUFFER_FRAMES = 2,
};

enum buffer_state {
	BUFFER_FREE = 0,
	BUFFER_WRITING = 1,
	BUFFER_FULL = 2,
};

/* A buffer's word: enum buffer_state in the low byte, above it the writer's place. */
enum { BUFFER_STATE_BITS = 8 };
#define BUFFER_STATE_MASK ((1u << BUFFER_STATE_BITS) - 1)

static inline uint32_t buffer_word(enum buffer_state state, uint32_t place)
{
	return (uint32_t)state | place << BUFFER_STATE_BITS;
}

/* Stack buffers come in size classes, each with a bitmap of the buffers in use. The lowest free buffer is
 * used first, so that no more memory is touched than stacks wait at the same time. Most stacks of C programs
 * take less than 2 KiB. The area begins with the bitmaps, in the order of the classes, padded to a page. The
 * bitmap of each class is a whole number of words; bits beyond the class' count mean nothing. */
enum {
	BUFFER_CLASSES = 6,
	BUFFER_BITMAPS_BYTES = 4096,
};
static const struct {
	uint32_t count;         /* in `buffers`; of the largest ones: at most, see buffer_count() */
	uint32_t dropped_count; /* in dropped_buffers: 2.4 MiB in all */
	uint32_t bytes;         /* struct region_buffer and the stack after it */
} buffer_class[BUFFER_CLASSES] = {
    {4096, 64, 2048},
    {1024, 32, 8192},
    {512, 32, 16384},
    {256, 8, 32768},
    {64, 4, 65536},
    {64, 1, (1 << 20) + 65536},
};

/* How many there are in a region with so many of the largest buffers (header.large_buffers): in `buffers`, or
 * in dropped_buffers. */
static inline uint32_t buffer_count(uint32_t class, uint32_t large_buffers, bool dropped)
{
	return dropped                   ? buffer_class[class].dropped_count
	    : class + 1 < BUFFER_CLASSES ? buffer_class[class].count
	                                 : large_buffers;
}

/* Words of the bitmap of so many buffers. */
static inline uint32_t buffer_words(uint32_t count)
{
	return (count + 63) / 64;
}

/* The bits of one of these words that stand for buffers. */
static inline uint64_t buffer_bits(uint32_t count, uint32_t word)
{
	return count >= (word + 1) * 64 ? UINT64_MAX : (UINT64_C(1) << count % 64) - 1;
}

_Static_assert(sizeof(struct region_buffer) == 192, "buffer header layout");

#endif
