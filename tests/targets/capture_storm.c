/* SPDX-License-Identifier: Apache-2.0 */
/* build: -fno-builtin -Wno-all */
/*
 * Many programs, or many children, at once.
 *
 *   capture_storm exec COUNT [READY GO DONE]  COUNT children execute this program again in the same moment:
 *                                             when all of them are there or, with file names, when GO exists;
 *                                             makes READY and DONE
 *   capture_storm fork COUNT                  COUNT forked children that allocate are alive at the same time
 *   capture_storm quick                       allocates 1000 bytes and ends
 */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

__attribute__((noinline, noclone)) static void take(void)
{
	char *block = malloc(1000);

	if (!block)
		_exit(9);
	memset(block, 1, 1000);
}

static void make(const char *path)
{
	int fd = open(path, O_WRONLY | O_CREAT, 0600);

	if (fd < 0)
		_exit(8);
	close(fd);
}

int main(int argc, char *argv[])
{
	int gate[2], here[2], failed = 0;
	char byte = 0;

	if (argc < 3) {
		take();
		return 0;
	}
	int count = atoi(argv[2]), forks = strcmp(argv[1], "fork") == 0;
	if (pipe(gate) != 0 || pipe(here) != 0)
		return 7;
	for (int i = 0; i < count; i++) {
		pid_t pid = fork();

		if (pid < 0)
			return 6;
		if (pid > 0)
			continue;
		close(gate[1]);
		if (forks)
			take();
		if (write(here[1], &byte, 1) != 1 || read(gate[0], &byte, 1) != 0)
			_exit(5);
		if (forks)
			_exit(0);
		execl("/proc/self/exe", "capture_storm", "quick", (char *)NULL);
		_exit(4);
	}
	for (int i = 0; i < count; i++)
		if (read(here[0], &byte, 1) != 1)
			return 3;
	if (argc > 5) {
		make(argv[3]);
		while (access(argv[4], F_OK) != 0)
			usleep(2000);
	}
	close(gate[1]);
	for (int i = 0, status; i < count; i++)
		failed |= wait(&status) < 0 || status != 0;
	if (argc > 5)
		make(argv[5]);
	take();
	return failed;
}
