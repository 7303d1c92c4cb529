/* SPDX-License-Identifier: Apache-2.0 */
#include "sampler/write/end_phrase.h"

#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>

const char *end_phrase_pid(pid_t pid, char text[END_PHRASE_PID_BYTES])
{
	snprintf(text, END_PHRASE_PID_BYTES, pid ? "pid %d" : "pid unknown", (int)pid);
	return text;
}

void end_phrase_plain(const struct target *target, char *text, size_t text_bytes)
{
	int status = target->status;
	const char *name;

	switch (target->end) {
	case TARGET_EXITED:
		if (WIFEXITED(status)) {
			snprintf(text, text_bytes, "exited with status %d", WEXITSTATUS(status));
		} else {
			name = sigabbrev_np(WTERMSIG(status));
			snprintf(text, text_bytes, "was killed by SIG%s", name ? name : "?");
		}
		break;
	case TARGET_EXEC:
		snprintf(text, text_bytes, "%s",
		    target->unprofiled[0] ? target->unprofiled : "executed another program");
		break;
	case TARGET_DETACHED:
		snprintf(text, text_bytes, "runs on, detached");
		break;
	case TARGET_GONE:
		snprintf(text, text_bytes, "has ended; how is not known (not a child of heaptap)");
		break;
	case TARGET_UNSEEN:
		snprintf(text, text_bytes, "had ended before heaptap saw it; how is not known");
		break;
	default:
		snprintf(text, text_bytes, "is running");
		break;
	}
}

void end_phrase_cause(
    const struct target *target, const struct oom_watch *watch, char *text, size_t text_bytes)
{
	char end[END_PHRASE_BYTES];

	if (target->end == TARGET_ALIVE || target->end == TARGET_DETACHED) {
		snprintf(text, text_bytes, "sampling was stopped, the process is still running");
		return;
	}
	end_phrase_describe(target, watch, end, sizeof(end));
	snprintf(text, text_bytes, "the process %s", end);
}

/* The signal that ended it; 0: none did, or it is not known. */
static int killer(const struct target *target)
{
	return target->end == TARGET_EXITED && WIFSIGNALED(target->status) ? WTERMSIG(target->status) : 0;
}

void end_phrase_describe(
    const struct target *target, const struct oom_watch *watch, char *text, size_t text_bytes)
{
	const char *cgroup = watch->cgroup;

	end_phrase_plain(target, text, text_bytes);
	int64_t kills = killer(target) == SIGKILL ? oom_watch_kills(watch) : 0;
	size_t length = strlen(text);
	if (kills <= 0)
		return;
	if (cgroup[0] && strlen(cgroup) < text_bytes / 2)
		snprintf(text + length, text_bytes - length,
		    "; the OOM killer took %" PRId64 " in its memory cgroup %s meanwhile", kills, cgroup);
	else
		snprintf(text + length, text_bytes - length,
		    "; the OOM killer took %" PRId64 " processes meanwhile", kills);
}

enum end_phrase_alarm end_phrase_alarm(const struct target *target)
{
	switch (killer(target)) {
	case 0:
	case SIGPIPE:
		return END_PHRASE_QUIET;
	case SIGHUP:
	case SIGINT:
	case SIGTERM:
	case SIGALRM:
	case SIGUSR1:
	case SIGUSR2:
		return END_PHRASE_TOLD;
	default:
		return END_PHRASE_KILLED;
	}
}
