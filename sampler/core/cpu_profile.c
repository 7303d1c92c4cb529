/* SPDX-License-Identifier: Apache-2.0 */
#include "sampler/core/cpu_profile.h"

#include "pprof/codec/file.h"
#include "pprof/text/clock.h"
#include "sampler/core/control_request.h"
#include "sampler/core/control_server.h"
#include "sampler/core/own_resources.h"
#include "sampler/linux/pidfd.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#define EVENT  "cpu-clock"
#define ENDING "-" EVENT "-exit.pb.gz" /* what the snapshot of an event appends to a name without %n */

/* A child that is told to stop has so long to write its profile: a machine under load is slow. */
#define GRACE_NS (UINT64_C(120) * CLOCK_NS_PER_S)

/* A child is told to stop when its time is over. It stops by itself SPARE_MS later, in case we have ended:
 * exec of a file with capabilities clears PR_SET_PDEATHSIG. */
enum { SPARE_MS = 1000 };

/* In the child. SIGINT stays blocked until `heaptap record` can read it, so that an early one is not lost. */
static void become(pid_t pid, uint32_t duration_ms, const char *file)
{
	char pid_text[16], duration[32], event[32];
	sigset_t stop;

	snprintf(pid_text, sizeof(pid_text), "%d", (int)pid);
	snprintf(duration, sizeof(duration), "%" PRIu64 "ms", (uint64_t)duration_ms + SPARE_MS);
	snprintf(event, sizeof(event), EVENT "@%d", CPU_PROFILE_HZ);
	char *const words[] = {"heaptap", "record", "--no-heap", "--pid", pid_text, "--duration", duration,
	    "-e", event, "-q", "-o", (char *)(uintptr_t)file, NULL};
	prctl(PR_SET_PDEATHSIG, SIGINT);
	setsid();
	descriptors_drop(NULL, 0);
	sigemptyset(&stop);
	sigaddset(&stop, SIGINT);
	sigprocmask(SIG_SETMASK, &stop, NULL);
	signal(SIGINT, SIG_DFL);
	signal(SIGCHLD, SIG_DFL);
	execv("/proc/self/exe", words);
	_exit(126);
}

int cpu_profiles_start(
    struct cpu_profiles *profiles, pid_t pid, uint32_t duration_ms, uint64_t asker, const char *file)
{
	struct cpu_profile *item = profiles->items, *end = item + CPU_PROFILES;
	char escaped[PATH_MAX], *to = escaped;

	while (item < end && item->child)
		item++;
	if (item == end)
		return -EBUSY;
	if (strlen(file) >= sizeof(item->path) - sizeof(ENDING))
		return -ENAMETOOLONG;
	for (const char *at = file; *at && to < escaped + sizeof(escaped) - 8; at++) {
		if (*at == '%')
			*to++ = '%';
		*to++ = *at;
	}
	strcpy(to, ".pb.gz");
	pid_t child = fork();
	if (child == 0)
		become(pid, duration_ms, escaped);
	if (child < 0)
		return -errno;
	*item = (struct cpu_profile){.child = child,
	    .pid = pid,
	    .pidfd = pidfd_open_process(pid),
	    .asker = asker,
	    .end_ns = clock_now_ns() + (uint64_t)duration_ms * CLOCK_NS_PER_MS};
	strcpy(item->path, file);
	return 0;
}

void cpu_profiles_cancel(struct cpu_profiles *profiles, uint64_t asker)
{
	for (struct cpu_profile *item = profiles->items; item < profiles->items + CPU_PROFILES; item++) {
		if (!item->child || item->asker != asker)
			continue;
		item->asker = 0;
		item->end_ns = 0;
	}
}

uint64_t cpu_profiles_tend(struct cpu_profiles *profiles, uint64_t now_ns)
{
	uint64_t due_ns = UINT64_MAX;

	for (struct cpu_profile *item = profiles->items; item < profiles->items + CPU_PROFILES; item++) {
		if (!item->child)
			continue;
		if (now_ns >= item->end_ns) {
			kill(item->child, item->told ? SIGKILL : SIGINT);
			item->told = true;
			item->end_ns = now_ns + GRACE_NS;
		}
		if (item->end_ns - now_ns < due_ns)
			due_ns = item->end_ns - now_ns;
	}
	return due_ns;
}

static bool has_ended(const struct cpu_profile *item)
{
	return item->pidfd >= 0 ? pidfd_has_ended(item->pidfd) : item->pidfd == -ESRCH;
}

static void item_end(struct cpu_profile *item, const char *path)
{
	unlink(path);
	if (item->pidfd >= 0)
		close(item->pidfd);
	item->child = 0;
}

/* What the child has written, as a descriptor, or -errno. */
static int take_file(const struct cpu_profile *item, const char *path, int status)
{
	uint8_t *bytes;
	size_t length;
	int error = file_read(path, CONTROL_PROFILE_BYTES_MAX, &bytes, &length);

	/* The child has written the reason to its standard error, which nobody reads. */
	if (error && has_ended(item))
		return -ESRCH;
	if (error)
		return WIFEXITED(status) && WEXITSTATUS(status) == 0 ? -ENODATA : -EACCES;
	int fd = control_server_memory(bytes, length);
	free(bytes);
	return fd;
}

bool cpu_profiles_reap(struct cpu_profiles *profiles, pid_t child, int status)
{
	struct cpu_profile *item = profiles->items, *end = item + CPU_PROFILES;
	char path[PATH_MAX + sizeof(ENDING)];

	while (item < end && item->child != child)
		item++;
	if (item == end)
		return false;
	snprintf(path, sizeof(path), "%s" ENDING, item->path);
	if (item->asker)
		profiles->giver.give(
		    profiles->giver.context, item->asker, item->pid, take_file(item, path, status));
	item_end(item, path);
	return true;
}

void cpu_profiles_fini(struct cpu_profiles *profiles)
{
	char path[PATH_MAX + sizeof(ENDING)];

	for (struct cpu_profile *item = profiles->items; item < profiles->items + CPU_PROFILES; item++) {
		if (!item->child)
			continue;
		kill(item->child, SIGKILL);
		waitpid(item->child, NULL, 0);
		/* The sampler often ends because the process has ended. A client is told that, and not of
		 * a failure. */
		if (item->asker)
			profiles->giver.give(profiles->giver.context, item->asker, item->pid,
			    has_ended(item) ? -ESRCH : -ECANCELED);
		snprintf(path, sizeof(path), "%s" ENDING, item->path);
		item_end(item, path);
	}
}
