/* SPDX-License-Identifier: Apache-2.0 */
#include "sampler/enable/systemctl.h"

#include "sampler/enable/unit_file.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define VARIABLE "LD_PRELOAD="

enum { ENVIRONMENT_BYTES = 1 << 16 };

bool systemctl_runs(void)
{
	struct stat status;

	return lstat("/run/systemd/system", &status) == 0 && S_ISDIR(status.st_mode);
}

/* Its standard output, cut to fit. 0, -EIO: it failed; or -errno. */
static int run(const char *const arguments[], char *output, size_t output_bytes)
{
	int fds[2], status = -1;
	size_t length = 0;
	ssize_t got = 0;

	if (pipe2(fds, O_CLOEXEC) != 0)
		return -errno;
	pid_t pid = fork();
	if (pid == 0) {
		if (dup2(fds[1], STDOUT_FILENO) == STDOUT_FILENO)
			execvp("systemctl", (char *const *)(uintptr_t)arguments);
		_exit(127);
	}
	close(fds[1]);
	while (pid > 0 && length < output_bytes - 1 &&
	    (got = read(fds[0], output + length, output_bytes - 1 - length)) != 0) {
		if (got < 0 && errno != EINTR)
			break;
		length += got > 0 ? (size_t)got : 0;
	}
	output[length] = '\0';
	close(fds[0]);
	while (pid > 0 && waitpid(pid, &status, 0) < 0 && errno == EINTR)
		;
	return pid > 0 && WIFEXITED(status) && WEXITSTATUS(status) == 0 ? 0 : -EIO;
}

int systemctl_reload(void)
{
	static const char *const arguments[] = {"systemctl", "daemon-reload", NULL};
	char output[256];

	return run(arguments, output, sizeof(output));
}

int systemctl_preload(const char *unit, char *value, size_t value_bytes)
{
	const char *const arguments[] = {"systemctl", "show", "--property=Environment", "--", unit, NULL};
	static char output[ENVIRONMENT_BYTES], word[ENVIRONMENT_BYTES];
	int error = run(arguments, output, sizeof(output));
	const char *at = output + strcspn(output, "=");

	value[0] = '\0';
	if (error)
		return error;
	at += *at == '=';
	while (unit_file_word(&at, word, sizeof(word)) == 1)
		if (strncmp(word, VARIABLE, strlen(VARIABLE)) == 0)
			snprintf(value, value_bytes, "%s", word + strlen(VARIABLE));
	return 0;
}

int systemctl_main_process(const char *unit, pid_t *pid)
{
	const char *const arguments[] = {"systemctl", "show", "--property=MainPID", "--", unit, NULL};
	char output[256] = "";
	int error = run(arguments, output, sizeof(output));
	const char *equals = strchr(output, '=');
	long number = equals ? strtol(equals + 1, NULL, 10) : 0;

	*pid = !error && number > 0 && number <= INT_MAX ? (pid_t)number : 0;
	return error;
}
