/* SPDX-License-Identifier: Apache-2.0 */
#include "sampler/doctor/doctor_self.h"

#include "sampler/doctor/finding.h"
#include "sampler/linux/proc.h"
#include "sampler/loader/profiled.h"

#include <stdio.h>
#include <sys/stat.h>

struct profiled_here {
	pid_t by;            /* the pid of `heaptap record` or of its sampler */
	char first[64 + 32]; /* a process that it profiles */
};

static pid_t parent_of(pid_t pid)
{
	char text[8192];

	return proc_read(pid, "status", text, sizeof(text)) < 0
	    ? 0
	    : (pid_t)proc_status_number(text, "\nPPid:", 10, 0);
}

static int take_first(void *context, pid_t pid, const char *name, bool sampled)
{
	struct profiled_here *here = context;
	pid_t sampler = sampled ? profiled_sampler(pid) : 0;

	if (!sampler || (sampler != here->by && parent_of(sampler) != here->by))
		return 0;
	snprintf(here->first, sizeof(here->first), "heaptap doctor %d (%s)", (int)pid, name);
	return 1;
}

bool doctor_self_is(struct findings *findings, pid_t pid)
{
	struct profiled_here here = {pid, "heaptap doctor PID"};
	char path[PROC_PATH_BYTES];
	struct stat own, other;

	if (profiled_sampler(pid) || stat("/proc/self/exe", &own) ||
	    stat(proc_path(path, pid, "exe"), &other) || own.st_dev != other.st_dev ||
	    own.st_ino != other.st_ino)
		return false;
	profiled_each(take_first, &here);
	finding_say(findings, FINDING_BAD, here.first,
	    "process %d is heaptap itself: name a process that it profiles", (int)pid);
	return true;
}
