/* SPDX-License-Identifier: Apache-2.0 */
/*
 * snapshot_storm TRUTH [LEAK_BYTES [GO]]: allocates and frees without end, from when there is a file GO.
 * take_leak() leaks one block of LEAK_BYTES (default 4096) in sixteen, and touches it. The truth is a shared
 * page of the file TRUTH, right at every instant:
 *
 *     u64 leaked blocks begun, u64 leaked blocks done
 */
#include <fcntl.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define NAMED         __attribute__((noinline, noclone))
#define STAY(pointer) __asm__ volatile("" : "+r"(pointer) : : "memory")

static NAMED void *take_leak(size_t bytes)
{
	void *block = malloc(bytes);

	STAY(block);
	return block;
}

static NAMED void *take_short(size_t bytes)
{
	void *block = malloc(bytes);

	STAY(block);
	return block;
}

int main(int argc, char **argv)
{
	int fd = argc > 1 ? open(argv[1], O_RDWR | O_CREAT | O_TRUNC, 0600) : -1;
	size_t leak_bytes = argc > 2 ? strtoul(argv[2], NULL, 10) : 4096;

	if (fd < 0 || ftruncate(fd, 4096) != 0)
		return 2;
	_Atomic uint64_t *truth = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (truth == MAP_FAILED)
		return 2;
	while (argc > 3 && access(argv[3], F_OK) != 0)
		usleep(1000);
	void *recent[64] = {0};
	for (uint32_t i = 0;; i++) {
		free(recent[i % 64]);
		recent[i % 64] = take_short(16 + i % 2000);
		if (i % 16)
			continue;
		atomic_fetch_add(&truth[0], 1);
		void *block = take_leak(leak_bytes);
		if (!block)
			return 3;
		memset(block, 1, leak_bytes);
		atomic_fetch_add(&truth[1], 1);
	}
}
