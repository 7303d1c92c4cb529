/* SPDX-License-Identifier: Apache-2.0 */
/*
 * lock_all FLAGS: locks all memory, by flags as of mlockall(2), and prints what that did, in words that must
 * be the same with and without a profiler, and then the resident memory, which is about the same:
 *
 *     result R ERRNO     of mlockall, which must leave errno alone if it succeeds
 *     before N, after N  how many pages of 64 are resident of a mapping that was made before, and after it
 *     resident N         KiB
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

enum { PAGES = 64, PAGE_BYTES = 4096 };

static void *map(void)
{
	return mmap(NULL, PAGES * PAGE_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
}

static int resident_pages(void *start)
{
	unsigned char pages[PAGES];
	int count = 0;

	if (start == MAP_FAILED || mincore(start, PAGES * PAGE_BYTES, pages) != 0)
		return -1;
	for (int i = 0; i < PAGES; i++)
		count += pages[i] & 1;
	return count;
}

static long resident_kib(void)
{
	char line[256];
	long kib = -1;
	FILE *status = fopen("/proc/self/status", "r");

	while (status && fgets(line, sizeof(line), status))
		if (strncmp(line, "VmRSS:", 6) == 0)
			kib = atol(line + 6);
	if (status)
		fclose(status);
	return kib;
}

int main(int argc, char *argv[])
{
	void *before = map(), *volatile block = malloc(1000);

	if (argc != 2 || !block)
		return 2;
	errno = 77;
	const int result = mlockall(atoi(argv[1]));
	printf("result %d %d\n", result, errno);
	void *after = map();
	printf("before %d, after %d\n", resident_pages(before), resident_pages(after));
	printf("resident %ld\n", resident_kib());
	free(block);
	return 0;
}
