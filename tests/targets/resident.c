/* SPDX-License-Identifier: Apache-2.0 */
/* build: -fno-builtin */
/*
 * Resident memory of every kind, in known amounts, all of it touched:
 *
 * resident HEAP_MIB MAPPED_MIB FILE
 *
 * HEAP_MIB in blocks of 1000 bytes, of which every second one is freed again; a quarter of that in one
 * block, and a quarter in a thread's arena; MAPPED_MIB by mmap; 8 MiB of shared memory; FILE, mapped; 256
 * KiB on the stacks of each of 3 threads. Prints "ready PID", then waits for the end of stdin.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

enum { BLOCK_BYTES = 1000, SHARED_BYTES = 8 << 20, STACK_BYTES = 256 << 10, THREADS = 3 };

static pthread_barrier_t barrier;

static void check(int good, const char *what)
{
	if (good)
		return;
	perror(what);
	exit(1);
}

static char **blocks_new(size_t bytes)
{
	size_t count = bytes / BLOCK_BYTES;
	char **blocks = malloc((count + 1) * sizeof(*blocks));

	for (size_t i = 0; i < count; i++)
		memset(blocks[i] = malloc(BLOCK_BYTES), 1, BLOCK_BYTES);
	blocks[count] = NULL;
	return blocks;
}

static void *fill_stack(void *arena_bytes)
{
	volatile char deep[STACK_BYTES];
	char **kept = arena_bytes ? blocks_new(*(size_t *)arena_bytes) : NULL;

	for (size_t i = 0; i < sizeof(deep); i += 512)
		deep[i] = 1;
	pthread_barrier_wait(&barrier);
	pthread_barrier_wait(&barrier);
	return kept;
}

static void map_file(const char *path)
{
	struct stat status;
	int fd = open(path, O_RDONLY);
	unsigned sum = 0;

	check(fd >= 0 && fstat(fd, &status) == 0, path);
	const volatile char *file = mmap(NULL, (size_t)status.st_size, PROT_READ, MAP_SHARED, fd, 0);
	check(file != MAP_FAILED, path);
	for (off_t i = 0; i < status.st_size; i += 4096)
		sum += (unsigned char)file[i];
	close(fd);
	check(sum != 1, path);
}

int main(int argc, char **argv)
{
	pthread_t threads[THREADS];

	check(argc == 4, "arguments");
	size_t heap_bytes = strtoul(argv[1], NULL, 10) << 20, mapped_bytes = strtoul(argv[2], NULL, 10) << 20;
	size_t quarter_bytes = heap_bytes / 4;

	char **blocks = blocks_new(heap_bytes);
	for (size_t i = 0; blocks[i] && blocks[i + 1]; i += 2)
		free(blocks[i]);
	memset(malloc(quarter_bytes), 1, quarter_bytes);
	char *mapped = mmap(NULL, mapped_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	check(mapped != MAP_FAILED, "mmap");
	/* Else the kernel makes one mapping of it and an adjacent one of the allocator's. */
	check(madvise(mapped, mapped_bytes, MADV_DONTDUMP) == 0, "madvise");
	memset(mapped, 1, mapped_bytes);
	int fd = memfd_create("shared", 0);
	check(ftruncate(fd, SHARED_BYTES) == 0, "memfd");
	char *shared = mmap(NULL, SHARED_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	check(shared != MAP_FAILED, "mmap");
	memset(shared, 1, SHARED_BYTES);
	map_file(argv[3]);
	pthread_barrier_init(&barrier, NULL, THREADS + 1);
	for (int i = 0; i < THREADS; i++)
		check(
		    pthread_create(&threads[i], NULL, fill_stack, i ? NULL : &quarter_bytes) == 0, "thread");
	pthread_barrier_wait(&barrier);
	printf("ready %d\n", (int)getpid());
	fflush(stdout);
	while (getchar() != EOF)
		;
	_exit(0);
}
