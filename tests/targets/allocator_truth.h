/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a program knows of its own blocks: by the function that allocated them, how many and how large, and
 * which are still in use. Thread-safe as far as each block is only used by one thread at a time.
 *
 * truth_write writes what a profile at period 1 should show: function, alloc_objects, alloc_bytes,
 * inuse_objects, inuse_bytes.
 */
#ifndef TESTS_TARGETS_ALLOCATOR_TRUTH_H
#define TESTS_TARGETS_ALLOCATOR_TRUTH_H

#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { TRUTH_ROWS = 128, ERRNO_BEFORE = 77 };

struct row {
	const char *name;
	long objects, bytes, live, live_bytes;
};
struct block {
	void *at;
	size_t size;
	struct row *row;
};
static struct row rows[TRUTH_ROWS];

static inline struct row *row_of(const char *name)
{
	for (int i = 0; i < TRUTH_ROWS; i++) {
		const char *nobody = NULL;

		if (!__atomic_load_n(&rows[i].name, __ATOMIC_ACQUIRE))
			__atomic_compare_exchange_n(
			    &rows[i].name, &nobody, name, 0, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE);
		if (strcmp(rows[i].name, name) == 0)
			return &rows[i];
	}
	abort();
}

/* Prints on stdout, so that a native run and a recorded one can be compared. */
static inline void must(int good, const char *what)
{
	if (!good) {
		printf("wrong: %s (errno %d)\n", what, errno);
		fflush(stdout);
		_exit(9);
	}
}

static inline void enter(struct block *block)
{
	__atomic_fetch_add(&block->row->objects, 1, __ATOMIC_RELAXED);
	__atomic_fetch_add(&block->row->bytes, (long)block->size, __ATOMIC_RELAXED);
	__atomic_fetch_add(&block->row->live, 1, __ATOMIC_RELAXED);
	__atomic_fetch_add(&block->row->live_bytes, (long)block->size, __ATOMIC_RELAXED);
}

static inline void leave(struct block *block)
{
	__atomic_fetch_sub(&block->row->live, 1, __ATOMIC_RELAXED);
	__atomic_fetch_sub(&block->row->live_bytes, (long)block->size, __ATOMIC_RELAXED);
}

/* A block that was just returned; errno was ERRNO_BEFORE before the call. */
static inline struct block took(const char *name, void *at, size_t size)
{
	struct block block = {at, size, row_of(name)};

	must(at != NULL, name);
	must(errno == ERRNO_BEFORE, name);
	memset(at, 0x5a, size);
	enter(&block);
	return block;
}

/* NAME(size) calls CALL in a function of its own, take_NAME, which a stack shows. */
#define TAKE(name, call)                                                  \
	__attribute__((noinline, noclone)) void *take_##name(size_t size) \
	{                                                                 \
		errno = ERRNO_BEFORE;                                     \
		void *block = (void *)(call);                             \
		__asm__ volatile("" : "+r"(block) : : "memory");          \
		return block;                                             \
	}
#define TOOK(name, size) took("take_" #name, take_##name(size), size)

/* NAME(old, size) replaces a block. */
#define RESIZE(name, call)                                                             \
	__attribute__((noinline, noclone)) void *resize_##name(void *old, size_t size) \
	{                                                                              \
		errno = ERRNO_BEFORE;                                                  \
		void *block = (void *)(call);                                          \
		__asm__ volatile("" : "+r"(block) : : "memory");                       \
		return block;                                                          \
	}
#define RESIZED(name, block, size) (leave(&block), took("resize_" #name, resize_##name(block.at, size), size))

#define DROP(block, call)                           \
	do {                                        \
		void *at = (block).at;              \
		leave(&(block));                    \
		errno = ERRNO_BEFORE;               \
		call;                               \
		must(errno == ERRNO_BEFORE, #call); \
	} while (0)

static inline void truth_write(const char *file)
{
	FILE *out = fopen(file, "w");

	must(out != NULL, file);
	for (int i = 0; i < TRUTH_ROWS && rows[i].name; i++)
		fprintf(out, "%s\t%ld\t%ld\t%ld\t%ld\n", rows[i].name, rows[i].objects, rows[i].bytes,
		    rows[i].live, rows[i].live_bytes);
	must(fclose(out) == 0, file);
}

/* A forked child begins with its parent's live blocks, and has allocated nothing. */
static inline void truth_forked(void)
{
	for (int i = 0; i < TRUTH_ROWS; i++)
		rows[i].objects = rows[i].bytes = 0;
}

#endif
