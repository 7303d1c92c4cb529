/* SPDX-License-Identifier: Apache-2.0 */
#include "sampler/cmd/enable/systemctl.h"

#include "sampler/cmd/enable/unit_file.h"

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

enum { OUTPUT_BYTES = 1 << 16 };

bool systemctl_runs(void)
{
	struct stat status;

	return lstat("/run/systemd/system", &status) == 0 && S_ISDIR(status.st_mode);
}

/* Its standard output, cut to fit. 0, -EIO: it failed; or -errno. */
static int run(const char *const arguments[], char output[OUTPUT_BYTES])
{
	int fds[2], status = -1;

	output[0] = '\0';
	if (pipe2(fds, O_CLOEXEC) != 0)
		return -errno;
	pid_t pid = fork();
	if (pid == 0) {
		if (dup2(fds[1], STDOUT_FILENO) == STDOUT_FILENO)
			execvp("systemctl", (char *const *)(uintptr_t)arguments);
		_exit(127);
	}
	close(fds[1]);
	FILE *file = fdopen(fds[0], "r");
	if (file && pid > 0)
		output[fread(output, 1, OUTPUT_BYTES - 1, file)] = '\0';
	if (file)
		fclose(file);
	else
		close(fds[0]);
	while (pid > 0 && waitpid(pid, &status, 0) < 0 && errno == EINTR)
		;
	return pid > 0 && WIFEXITED(status) && WEXITSTATUS(status) == 0 ? 0 : -EIO;
}

/* Cuts the output "PROPERTY=value" off before the value. */
static int show(const char *property, const char *unit, char output[OUTPUT_BYTES])
{
	const char *const arguments[] = {"systemctl", "show", property, "--", unit, NULL};
	int error = run(arguments, output);
	const char *equals = strchr(output, '=');
	const char *value = equals ? equals + 1 : "";

	memmove(output, value, strlen(value) + 1);
	return error;
}

int systemctl_reload(void)
{
	static const char *const arguments[] = {"systemctl", "daemon-reload", NULL};
	static char output[OUTPUT_BYTES];

	return run(arguments, output);
}

int systemctl_preload(const char *unit, char *value, size_t value_bytes)
{
	static char output[OUTPUT_BYTES], word[OUTPUT_BYTES];
	int error = show("--property=Environment", unit, output);
	const char *at = output;

	value[0] = '\0';
	while (!error && unit_file_word(&at, word, sizeof(word)) == 1)
		if (strncmp(word, VARIABLE, strlen(VARIABLE)) == 0)
			snprintf(value, value_bytes, "%s", word + strlen(VARIABLE));
	return error;
}

int systemctl_main_process(const char *unit, pid_t *pid)
{
	static char output[OUTPUT_BYTES];
	int error = show("--property=MainPID", unit, output);
	long number = error ? 0 : strtol(output, NULL, 10);

	*pid = number > 0 && number <= INT_MAX ? (pid_t)number : 0;
	return error;
}
