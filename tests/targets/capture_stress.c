/* SPDX-License-Identifier: Apache-2.0 */
/* build: -fno-builtin -Wno-all -Wl,--no-as-needed -lstdc++ */
/*
 * Allocates by every entry point from many threads, hands blocks from thread to thread, and verifies every
 * byte of every block when it comes back. Exit status 1 at the first difference.
 *
 * Entry points are the malloc family, operator new and delete in their forms, mmap, mremap and munmap.
 *
 *   capture_stress SECONDS THREADS [anything: tell how many operations]
 */
#define _GNU_SOURCE
#include <errno.h>
#include <malloc.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

extern void free_sized(void *pointer, size_t size) __attribute__((weak));
extern void free_aligned_sized(void *pointer, size_t alignment, size_t size) __attribute__((weak));

/* operator new and delete: plain, array, nothrow, aligned, sized */
extern char _ZSt7nothrow;
void *_Znwm(size_t), *_Znam(size_t), *_ZnwmRKSt9nothrow_t(size_t, void *),
    *_ZnamRKSt9nothrow_t(size_t, void *);
void *_ZnwmSt11align_val_t(size_t, size_t), *_ZnamSt11align_val_t(size_t, size_t);
void *_ZnwmSt11align_val_tRKSt9nothrow_t(size_t, size_t, void *),
    *_ZnamSt11align_val_tRKSt9nothrow_t(size_t, size_t, void *);
void _ZdlPv(void *), _ZdaPv(void *), _ZdlPvm(void *, size_t), _ZdaPvm(void *, size_t);
void _ZdlPvRKSt9nothrow_t(void *, void *), _ZdaPvRKSt9nothrow_t(void *, void *);
void _ZdlPvSt11align_val_t(void *, size_t), _ZdaPvSt11align_val_t(void *, size_t);
void _ZdlPvmSt11align_val_t(void *, size_t, size_t), _ZdaPvmSt11align_val_t(void *, size_t, size_t);
void _ZdlPvSt11align_val_tRKSt9nothrow_t(void *, size_t, void *),
    _ZdaPvSt11align_val_tRKSt9nothrow_t(void *, size_t, void *);

enum kind { HEAP, NEW, ARRAY, ALIGNED_NEW, ALIGNED_ARRAY, MAPPING };

struct block {
	size_t size, alignment;
	uint64_t seed;
	enum kind kind;
	unsigned char bytes[];
};

enum {
	SHELF = 4096,
	NATURAL = 8, /* mimalloc gives no more for sizes that are no multiple of 16 */
};
static _Atomic(struct block *) shelf[SHELF];
static _Atomic uint64_t operations;
static time_t deadline;
static int lax;        /* mimalloc 2.0.9 has aligned_alloc(512, 512) misaligned at times, by itself */
static int no_pvalloc; /* jemalloc has none: libc's would come, and free would be jemalloc's */
static volatile size_t huge = SIZE_MAX / 2 + 100;

static void wrong(const char *what)
{
	static const char text[] = "capture_stress: wrong: ";

	if (write(2, text, sizeof(text) - 1) + write(2, what, strlen(what)) + write(2, "\n", 1) < 0)
		_exit(2);
	_exit(1);
}

static uint64_t next(uint64_t *state)
{
	*state ^= *state << 13;
	*state ^= *state >> 7;
	*state ^= *state << 17;
	return *state;
}

static unsigned char byte_of(const struct block *block, size_t i)
{
	return (unsigned char)(block->seed >> (i % 7 * 8)) ^ (unsigned char)i;
}

static void fill(struct block *block, size_t size, size_t alignment, uint64_t seed, enum kind kind)
{
	*block = (struct block){.size = size, .alignment = alignment, .seed = seed, .kind = kind};
	for (size_t i = 0; i < size - sizeof(*block); i++)
		block->bytes[i] = byte_of(block, i);
}

static void verify(const struct block *block, size_t size)
{
	for (size_t i = 0; i < size - sizeof(*block); i++)
		if (block->bytes[i] != byte_of(block, i))
			wrong("a block's contents");
}

static size_t a_size(uint64_t *state)
{
	uint64_t random = next(state);
	size_t size = random % 512 == 0 ? 1 << 20 : (size_t)16 << (random >> 20) % 11;

	return sizeof(struct block) + size + (random >> 40) % size;
}

static size_t pages(size_t size)
{
	return (size + 4095) / 4096 * 4096;
}

static struct block *take_mapping(uint64_t *state)
{
	size_t size = pages(a_size(state));
	struct block *block = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (block == MAP_FAILED)
		wrong("mmap");
	for (size_t i = 0; i < size; i += 512)
		if (((unsigned char *)block)[i])
			wrong("mmap is not zero");
	fill(block, size, 4096, next(state), MAPPING);
	return block;
}

/* it follows munmap, but not mremap: the next owner of the old place would race with us */
#ifdef __SANITIZE_THREAD__
enum { MREMAP = 0 };
#else
enum { MREMAP = 1 };
#endif

static struct block *resize_mapping(struct block *block, uint64_t *state)
{
	size_t old = block->size, size = pages(a_size(state)), least = old < size ? old : size;

	if (size < old && (next(state) & 1 || !MREMAP)) {
		if (munmap((char *)block + size, old - size))
			wrong("munmap of a tail");
	} else if (MREMAP) {
		block = mremap(block, old, size, MREMAP_MAYMOVE);
		if (block == MAP_FAILED)
			wrong("mremap");
	}
	verify(block, least);
	fill(block, MREMAP ? size : least, 4096, next(state), MAPPING);
	return block;
}

static void drop_mapping(struct block *block, uint64_t *state)
{
	size_t size = block->size, cut = next(state) % (size / 4096) * 4096;

	verify(block, size);
	errno = 4321;
	if ((cut && munmap(block, cut)) || munmap((char *)block + cut, size - cut) || errno != 4321)
		wrong("munmap");
}

static struct block *take_new(uint64_t *state)
{
	size_t size = a_size(state), alignment = NATURAL;
	uint64_t random = next(state);
	enum kind kind = NEW + random % 4;
	void *block;

	if (kind >= ALIGNED_NEW) {
		alignment = (size_t)32 << (random >> 30) % 8;
		size = (size + alignment - 1) / alignment * alignment;
	}
	switch (kind) {
	case NEW:
		block = random & 64 ? _Znwm(size) : _ZnwmRKSt9nothrow_t(size, &_ZSt7nothrow);
		break;
	case ARRAY:
		block = random & 64 ? _Znam(size) : _ZnamRKSt9nothrow_t(size, &_ZSt7nothrow);
		break;
	case ALIGNED_NEW:
		block = random & 64 ? _ZnwmSt11align_val_t(size, alignment)
		                    : _ZnwmSt11align_val_tRKSt9nothrow_t(size, alignment, &_ZSt7nothrow);
		break;
	default:
		block = random & 64 ? _ZnamSt11align_val_t(size, alignment)
		                    : _ZnamSt11align_val_tRKSt9nothrow_t(size, alignment, &_ZSt7nothrow);
	}
	if (!block || (uintptr_t)block % (lax ? NATURAL : alignment))
		wrong("operator new");
	fill(block, size, alignment, next(state), kind);
	return block;
}

static void drop_new(struct block *block, uint64_t *state)
{
	size_t size = block->size, alignment = block->alignment;
	enum kind kind = block->kind;
	int form = next(state) % 3;

	verify(block, size);
	if (kind == NEW)
		form == 0       ? _ZdlPv(block)
		    : form == 1 ? _ZdlPvm(block, size)
		                : _ZdlPvRKSt9nothrow_t(block, &_ZSt7nothrow);
	else if (kind == ARRAY)
		form == 0       ? _ZdaPv(block)
		    : form == 1 ? _ZdaPvm(block, size)
		                : _ZdaPvRKSt9nothrow_t(block, &_ZSt7nothrow);
	else if (kind == ALIGNED_NEW)
		form == 0       ? _ZdlPvSt11align_val_t(block, alignment)
		    : form == 1 ? _ZdlPvmSt11align_val_t(block, size, alignment)
		                : _ZdlPvSt11align_val_tRKSt9nothrow_t(block, alignment, &_ZSt7nothrow);
	else
		form == 0       ? _ZdaPvSt11align_val_t(block, alignment)
		    : form == 1 ? _ZdaPvmSt11align_val_t(block, size, alignment)
		                : _ZdaPvSt11align_val_tRKSt9nothrow_t(block, alignment, &_ZSt7nothrow);
}

static struct block *take(uint64_t *state)
{
	switch (next(state) % 32) {
	case 0:
		return take_mapping(state);
	case 1 ... 8:
		return take_new(state);
	}
	size_t size = a_size(state), alignment = 16;
	uint64_t random = next(state);
	void *block = NULL;
	if (random & 1 << 10)
		alignment = (size_t)16 << (random >> 30) % 9;
	switch (random % 10) {
	case 0:
	case 1:
		alignment = NATURAL;
		block = malloc(size);
		break;
	case 2:
		alignment = NATURAL;
		block = calloc(size / 8 + 1, 8);
		for (size_t i = 0; block && i < size; i++)
			if (((unsigned char *)block)[i])
				wrong("calloc is not zero");
		break;
	case 3:
		alignment = NATURAL;
		block = realloc(NULL, size);
		break;
	case 4:
		alignment = NATURAL;
		block = reallocarray(NULL, size / 4 + 1, 4);
		break;
	case 5:
		if (posix_memalign(&block, alignment, size))
			wrong("posix_memalign");
		break;
	case 6:
		size = (size + alignment - 1) / alignment * alignment;
		block = aligned_alloc(alignment, size);
		break;
	case 7:
		block = memalign(alignment, size);
		break;
	case 8:
		alignment = 4096;
		block = valloc(size);
		break;
	default:
		alignment = 4096;
		block = no_pvalloc ? valloc(size) : pvalloc(size);
	}
	if (!block)
		wrong("no memory");
	if ((uintptr_t)block % (lax ? NATURAL : alignment))
		wrong("alignment");
	if (malloc_usable_size(block) < size)
		wrong("usable size");
	fill(block, size, alignment, next(state), HEAP);
	return block;
}

static struct block *resize(struct block *block, uint64_t *state)
{
	if (block->kind == MAPPING)
		return resize_mapping(block, state);
	if (block->kind != HEAP) {
		drop_new(block, state);
		return take_new(state);
	}
	size_t old = block->size, size = a_size(state);
	struct block *moved = next(state) & 1 ? realloc(block, size) : reallocarray(block, size, 1);
	if (!moved)
		wrong("no memory");
	verify(moved, old < size ? old : size);
	fill(moved, size, NATURAL, next(state), HEAP);
	return moved;
}

static void drop(struct block *block, uint64_t *state)
{
	if (block->kind == MAPPING)
		return drop_mapping(block, state);
	if (block->kind != HEAP)
		return drop_new(block, state);
	size_t size = block->size, alignment = block->alignment;
	verify(block, size);
	errno = 4321;
	switch (next(state) % 8) {
	case 0:
		if (realloc(block, huge) || reallocarray(block, huge, 4))
			wrong("a hopeless realloc");
		verify(block, size);
		free(block);
		break;
	case 1:
		block = realloc(block, 0);
		free(block);
		break;
	case 2:
		if (free_sized && alignment == NATURAL)
			free_sized(block, size);
		else
			free(block);
		break;
	case 3:
		if (free_aligned_sized && alignment > NATURAL)
			free_aligned_sized(block, alignment, size);
		else
			free(block);
		break;
	default:
		free(block);
		if (errno != 4321)
			wrong("errno after free");
	}
}

static void *work(void *argument)
{
	uint64_t state = ((uintptr_t)argument + 1) * 0x9e3779b97f4a7c15u, count = 0;

	while (++count % 256 || time(NULL) < deadline) {
		_Atomic(struct block *) *place = &shelf[next(&state) % SHELF];
		struct block *block = atomic_exchange(place, NULL);

		if (!block)
			block = take(&state);
		else if (next(&state) % 4 == 0)
			block = resize(block, &state);
		else {
			drop(block, &state);
			continue;
		}
		block = atomic_exchange(place, block);
		if (block)
			drop(block, &state);
	}
	atomic_fetch_add(&operations, count);
	return NULL;
}

int main(int argc, char *argv[])
{
	int threads = argc > 2 ? atoi(argv[2]) : 8;
	pthread_t others[64];
	uint64_t state = 99;

	deadline = time(NULL) + (argc > 1 ? atoi(argv[1]) : 1);
	lax = getenv("LAX_ALIGNMENT") != NULL;
	no_pvalloc = getenv("NO_PVALLOC") != NULL;
	if (threads < 1 || threads > 64)
		return 2;
	for (intptr_t i = 1; i < threads; i++)
		if (pthread_create(&others[i], NULL, work, (void *)i))
			wrong("pthread_create");
	work(NULL);
	for (int i = 1; i < threads; i++)
		pthread_join(others[i], NULL);
	for (int i = 0; i < SHELF; i++)
		if (shelf[i])
			drop(shelf[i], &state);
	printf("every block was right\n");
	if (argc > 3)
		fprintf(stderr, "%lu operations\n", (unsigned long)operations);
	return 0;
}
