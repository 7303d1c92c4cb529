/* SPDX-License-Identifier: Apache-2.0 */
#include "sampler/cmd/doctor/doctor_unit.h"

#include "pprof/text/clock.h"
#include "sampler/cmd/doctor/finding.h"
#include "sampler/cmd/enable/launcher.h"
#include "sampler/cmd/enable/systemctl.h"
#include "sampler/cmd/enable/unit.h"
#include "sampler/inject/profiled.h"
#include "sampler/linux/proc.h"
#include "sampler/linux/thread_facts.h"

#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

void doctor_unit_fix(const struct doctor_unit *facts, char fix[DOCTOR_UNIT_FIX_BYTES])
{
	char file[LAUNCHER_FILE_BYTES], line[LAUNCHER_LINE_BYTES];

	if (facts->launcher && !facts->told) {
		(void)launcher_file(facts->launcher, facts->unit, file);
		launcher_line(facts->library, line);
		snprintf(fix, DOCTOR_UNIT_FIX_BYTES,
		    "%s replaces the environment: put %s into %s, then: systemctl restart %s",
		    facts->launcher->program, line, file, facts->unit);
	} else if (facts->launcher || facts->older) {
		snprintf(fix, DOCTOR_UNIT_FIX_BYTES, "systemctl restart %s", facts->unit);
	} else {
		snprintf(fix, DOCTOR_UNIT_FIX_BYTES,
		    "what starts it clears the environment: set LD_PRELOAD=%s there", facts->library);
	}
}

/* A file's time and a process' start are of different clocks, so their ages are compared. The result may be
 * wrong if they differ by less than a tick. */
static bool is_older(pid_t pid, const char *unit)
{
	char folder[UNIT_PATH_BYTES], path[UNIT_PATH_BYTES + sizeof(UNIT_DROP_IN) + 1];
	struct stat status;
	const uint64_t start = thread_facts_birth(pid).ticks, now = thread_facts_now();
	const int64_t hertz = sysconf(_SC_CLK_TCK);

	unit_folder(unit, folder);
	snprintf(path, sizeof(path), "%s/" UNIT_DROP_IN, folder);
	if (!start || hertz <= 0 || stat(path, &status) != 0)
		return false;
	const int64_t written = status.st_mtim.tv_sec * (int64_t)CLOCK_NS_PER_S + status.st_mtim.tv_nsec;
	const int64_t file_age = clock_unix_ns() - written;
	const int64_t age = ((int64_t)now - (int64_t)start) * (CLOCK_NS_PER_S / hertz);
	return age > file_age;
}

static const struct launcher *find_launcher(
    const struct root_folder *root, const struct doctor_unit *facts, const char *comm)
{
	char file[LAUNCHER_FILE_BYTES];
	const struct launcher *launcher = launcher_of_unit(root, facts->unit, facts->library);

	if (launcher || facts->older)
		return launcher;
	/* A script may call the launcher. */
	launcher = launcher_of_server(comm);
	return launcher && launcher_file(launcher, facts->unit, file) ? launcher : NULL;
}

bool doctor_unit_examine(
    struct findings *findings, const struct root_folder *root, const char *unit, const char *library)
{
	struct doctor_unit facts = {.unit = unit, .library = library};
	char comm[PROC_COMM_BYTES], fix[DOCTOR_UNIT_FIX_BYTES];
	pid_t pid = 0;

	/* A template does not run. A process may end meanwhile, or we may not look at it. */
	if (strstr(unit, "@.") || !systemctl_runs() || systemctl_main_process(unit, &pid) != 0 || !pid ||
	    profiled_has_library(pid) != 0)
		return false;
	proc_read_comm(pid, comm);
	facts.older = is_older(pid, unit);
	facts.launcher = find_launcher(root, &facts, comm);
	facts.told = facts.launcher && launcher_is_told(root, facts.launcher, unit, library);
	doctor_unit_fix(&facts, fix);
	finding_say(findings, FINDING_NOTE, fix, "%s: its main process %d (%s) has not loaded the library",
	    unit, (int)pid, comm);
	return true;
}
