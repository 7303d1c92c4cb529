/* SPDX-License-Identifier: Apache-2.0 */
/* build: -static */
/*
 * timed FILE COMMAND...: runs COMMAND and writes to FILE: seconds of time, of user and of system CPU, peak
 * KiB, context switches. Static, so that nothing is preloaded into it.
 */
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static double seconds(struct timeval t)
{
	return (double)t.tv_sec + (double)t.tv_usec / 1e6;
}

int main(int argc, char *argv[])
{
	struct timespec began, ended;
	struct rusage used;
	int status;

	if (argc < 3)
		return 2;
	clock_gettime(CLOCK_MONOTONIC, &began);
	pid_t pid = fork();
	if (pid == 0) {
		execvp(argv[2], argv + 2);
		_exit(127);
	}
	while (wait4(pid, &status, 0, &used) != pid)
		;
	clock_gettime(CLOCK_MONOTONIC, &ended);
	FILE *out = fopen(argv[1], "w");
	if (!out)
		return 1;
	fprintf(out, "%.6f %.6f %.6f %ld %ld\n",
	    (double)(ended.tv_sec - began.tv_sec) + (double)(ended.tv_nsec - began.tv_nsec) / 1e9,
	    seconds(used.ru_utime), seconds(used.ru_stime), used.ru_maxrss, used.ru_nvcsw + used.ru_nivcsw);
	fclose(out);
	return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}
