/* SPDX-License-Identifier: Apache-2.0 */
#include "preload/memory.h"

#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

void *memory_map(size_t bytes, int flags, int fd)
{
	void *start = (void *)syscall(SYS_mmap, NULL, bytes, PROT_READ | PROT_WRITE, flags, fd, (off_t)0);
	return start == MAP_FAILED ? NULL : start;
}

bool memory_replace(void *start, size_t bytes, int fd)
{
	return (void *)syscall(SYS_mmap, start, bytes, PROT_READ | PROT_WRITE, MAP_FIXED | MAP_SHARED, fd,
	           (off_t)0) == start;
}

bool memory_cover(void *start, size_t bytes)
{
	const int flags = MAP_FIXED | MAP_SHARED | MAP_ANONYMOUS | MAP_NORESERVE;
	return (void *)syscall(SYS_mmap, start, bytes, PROT_READ | PROT_WRITE, flags, -1, (off_t)0) == start;
}

void memory_unmap(void *start, size_t bytes)
{
	syscall(SYS_munmap, start, bytes);
}
