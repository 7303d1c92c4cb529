/* SPDX-License-Identifier: Apache-2.0 */
#include "sampler/books/container_starter.h"

#include "pprof/text/log_line.h"
#include "sampler/linux/proc.h"

#include <stdio.h>
#include <string.h>

enum { COMMAND_LINE_BYTES = 16 << 10 };

static bool is_one_of(const char *word, const char *const *words)
{
	for (; *words; words++)
		if (strcmp(word, *words) == 0)
			return true;
	return false;
}

bool container_starter_is(const char *name, const char *arguments, size_t bytes)
{
	static const char *const starters[] = {"runc", "crun", "youki", "runsc", "podman", "docker",
	    "nerdctl", "ctr", "crictl", "buildah", NULL};
	/* Not `build`, `program runs`, `ps`. */
	static const char *const verbs[] = {
	    "run", "exec", "start", "create", "restart", "restore", "compose", "play", "kube", NULL};
	bool starts = false;

	if (!is_one_of(name, starters))
		return false;
	for (const char *at = arguments; at < arguments + bytes; at += strlen(at) + 1) {
		starts = starts || (at != arguments && is_one_of(at, verbs));
		if (strstr(at, "LD_PRELOAD"))
			return false;
	}
	return starts;
}

bool container_starter_say(pid_t pid)
{
	char name[PROC_COMM_BYTES], arguments[COMMAND_LINE_BYTES], text[LOG_LINE_BYTES];
	ssize_t length;

	proc_read_comm(pid, name);
	length = proc_read(pid, "cmdline", arguments, sizeof(arguments));
	if (length <= 0 || !container_starter_is(name, arguments, (size_t)length))
		return false;
	snprintf(text, sizeof(text),
	    "%s (pid %d): programs in containers have an environment of their own\n"
	    "and are not profiled by this; as root: heaptap attach PID --force",
	    name, (int)pid);
	log_lines(text);
	return true;
}
