/* SPDX-License-Identifier: Apache-2.0 */
/* build: -fno-builtin -Wno-all */
/*
 * A crowd: many short processes, a few at a time, as a shell script or a test suite has them.
 *
 *   capture_crowd COUNT AT_ONCE KIB   COUNT children, AT_ONCE of them at a time, execute this program again,
 *                                     by the path it was called by; each allocates KIB KiB in blocks of
 *                                     16 KiB, keeps half and lives for a millisecond
 *   capture_crowd member KIB          such a child
 *
 * Prints the time when the last child had ended: nanoseconds of CLOCK_MONOTONIC.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { BLOCK_KIB = 16 };

/* Two functions, so that members have two stacks. */
__attribute__((noinline, noclone)) static void *keep(void)
{
	char *block = malloc(BLOCK_KIB << 10);

	if (!block)
		_exit(9);
	block[0] = 1;
	return block;
}

__attribute__((noinline, noclone)) static void waste(void)
{
	char *block = malloc(BLOCK_KIB << 10);

	if (!block)
		_exit(9);
	block[0] = 1;
	free(block);
}

static int member(int kib)
{
	const struct timespec life = {.tv_nsec = 1000000};

	for (int i = 0; i < kib; i += 2 * BLOCK_KIB) {
		keep();
		waste();
	}
	nanosleep(&life, NULL);
	return 0;
}

int main(int argc, char *argv[])
{
	int failed = 0, running = 0, status;

	if (argc == 3 && strcmp(argv[1], "member") == 0)
		return member(atoi(argv[2]));
	if (argc != 4)
		return 2;
	for (int left = atoi(argv[1]); left > 0 || running > 0;) {
		if (left > 0 && running < atoi(argv[2])) {
			pid_t pid = fork();

			if (pid < 0)
				return 6;
			if (pid == 0) {
				execl(argv[0], argv[0], "member", argv[3], (char *)NULL);
				_exit(4);
			}
			left--;
			running++;
			continue;
		}
		failed |= wait(&status) < 0 || status != 0;
		running--;
	}
	struct timespec now;
	clock_gettime(CLOCK_MONOTONIC, &now);
	printf("%lld\n", now.tv_sec * 1000000000LL + now.tv_nsec);
	return failed;
}
