/* SPDX-License-Identifier: Apache-2.0 */
#include "preload/memory.h"

#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { USABLE = PROT_READ | PROT_WRITE };

static bool lazy;

bool memory_map_lazily(bool lazily)
{
	const bool before = lazy;

	lazy = lazily;
	return before;
}

static void *map(void *start, size_t bytes, int protection, int flags, int fd)
{
	return (void *)syscall(SYS_mmap, start, bytes, protection, flags, fd, (off_t)0);
}

/* Nothing is made of a mapping that nobody may use; when it is made usable, only private memory that is
 * locked is. */
static void *map_lazily(size_t bytes, int flags, int fd)
{
	void *start = map(NULL, bytes, PROT_NONE, flags, fd);

	if (start == MAP_FAILED)
		return start;
	if (flags & MAP_PRIVATE)
		syscall(SYS_munlock, start, bytes);
	if (memory_protect(start, bytes, USABLE))
		return start;
	memory_unmap(start, bytes);
	return MAP_FAILED;
}

bool memory_is_made_at_once(void)
{
	enum { BYTES = 4096 }; /* is rounded up to a page */
	unsigned char made[1] = {0};
	void *start = map(NULL, BYTES, USABLE, MAP_PRIVATE | MAP_ANONYMOUS, -1);

	if (start == MAP_FAILED)
		return false;
	const bool known = syscall(SYS_mincore, start, BYTES, made) == 0;
	memory_unmap(start, BYTES);
	return known && made[0] & 1;
}

void *memory_map(size_t bytes, int flags, int fd)
{
	void *start = lazy ? map_lazily(bytes, flags, fd) : map(NULL, bytes, USABLE, flags, fd);

	return start == MAP_FAILED ? NULL : start;
}

/* Unmaps what cannot be moved. */
static bool move(void *made, size_t bytes, void *over)
{
	if ((void *)syscall(SYS_mremap, made, bytes, bytes, MREMAP_MAYMOVE | MREMAP_FIXED, over) == over)
		return true;
	memory_unmap(made, bytes);
	return false;
}

/* An old size of 0 leaves the mapping as it is, and makes another of the same file (mremap(2)). The kernel
 * first unmaps what is at a fixed address, and may refuse then. So the new mapping is made elsewhere, and
 * moved. The kernel locks the new mapping if the first is locked, and then makes all its pages at once. So
 * the first page is unlocked before: it becomes a mapping of its own, and the new mapping follows it. */
void *memory_map_again(void *start, size_t bytes, void *over)
{
	if (lazy)
		syscall(SYS_munlock, start, (size_t)1);
	void *again = (void *)syscall(SYS_mremap, start, (size_t)0, bytes, MREMAP_MAYMOVE);

	if (again == MAP_FAILED)
		return NULL;
	if (!over)
		return again;
	return move(again, bytes, over) ? over : NULL;
}

/* A thread may be using what is there: it finds one or the other, and never nothing. */
static bool put_in_place(void *start, size_t bytes, int flags, int fd)
{
	if (!lazy)
		return map(start, bytes, USABLE, flags | MAP_FIXED, fd) == start;
	void *made = map_lazily(bytes, flags, fd);
	if (made == MAP_FAILED)
		return false;
	return move(made, bytes, start);
}

/* A second mapping is locked if the first is, and no limit is asked if it is not. */
bool memory_continue(void *start, size_t before, size_t bytes)
{
	unsigned char *from = (unsigned char *)start - before;

	syscall(SYS_munlock, from, before);
	return memory_map_again(from, before + bytes, from) != NULL;
}

bool memory_replace(void *start, size_t bytes, int fd)
{
	return put_in_place(start, bytes, MAP_SHARED, fd);
}

bool memory_cover(void *start, size_t bytes)
{
	return put_in_place(start, bytes, MAP_SHARED | MAP_ANONYMOUS | MAP_NORESERVE, -1);
}

void memory_unmap(void *start, size_t bytes)
{
	syscall(SYS_munmap, start, bytes);
}

bool memory_retire(void *start, size_t bytes)
{
	return map(start, bytes, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1) == start;
}

bool memory_protect(void *start, size_t bytes, int protection)
{
	return syscall(SYS_mprotect, start, bytes, protection) == 0;
}
