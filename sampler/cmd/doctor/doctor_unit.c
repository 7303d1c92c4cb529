/* SPDX-License-Identifier: Apache-2.0 */
#include "sampler/cmd/doctor/doctor_unit.h"

#include "pprof/text/clock.h"
#include "sampler/cmd/doctor/finding.h"
#include "sampler/cmd/enable/enable_library.h"
#include "sampler/cmd/enable/enable_unit.h"
#include "sampler/cmd/enable/launcher.h"
#include "sampler/cmd/enable/root_folder.h"
#include "sampler/cmd/enable/systemctl.h"
#include "sampler/cmd/enable/unit.h"
#include "sampler/inject/preload_library.h"
#include "sampler/inject/profiled.h"
#include "sampler/linux/proc.h"
#include "sampler/linux/thread_facts.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
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

/* Prints a finding if the main process runs without the library. False if it printed nothing. */
static bool say_not_loaded(
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

/* ---- what loads the library */

#define PRELOAD_FILE "/etc/ld.so.preload"

enum { REASON_BYTES = 4096 };

struct enabled {
	struct findings *findings;
	struct root_folder root;
	struct enable_library library;
};

static void examine_unit(void *context, const char *unit)
{
	struct enabled *enabled = context;
	char reason[REASON_BYTES];

	if (!enabled->library.path)
		finding_say(enabled->findings, FINDING_BAD, "install the library again, or: heaptap disable",
		    "%s shall load %s, which is not there", unit, enabled->library.wanted);
	else if (!enable_unit_is_in_force(
	             &enabled->root, unit, enabled->library.path, reason, sizeof(reason)))
		finding_say(
		    enabled->findings, FINDING_NOTE, NULL, "%s does not load the library: %s", unit, reason);
	else if (!say_not_loaded(enabled->findings, &enabled->root, unit, enabled->library.path))
		finding_say(
		    enabled->findings, FINDING_GOOD, NULL, "%s loads the library when it starts", unit);
}

/* An administrator may have written the library down for all programs. */
static void examine_machine(struct enabled *enabled)
{
	size_t length;
	char *text;

	if (root_folder_read(&enabled->root, PRELOAD_FILE, &text, &length) != 0)
		return;
	if (enabled->library.path && strstr(text, enabled->library.path))
		finding_say(enabled->findings, FINDING_GOOD, NULL, PRELOAD_FILE " names the library");
	else if (strstr(text, "/" PRELOAD_LIBRARY_NAME))
		finding_say(enabled->findings, FINDING_BAD, "remove it from " PRELOAD_FILE,
		    PRELOAD_FILE " names a " PRELOAD_LIBRARY_NAME " that is not of this heaptap");
	free(text);
}

void doctor_unit_examine(struct findings *findings)
{
	struct enabled enabled = {.findings = findings};

	if (root_folder_open(&enabled.root, NULL))
		return;
	enable_library_find(&enabled.library, &enabled.root, NULL);
	examine_machine(&enabled);
	(void)enable_unit_each(&enabled.root, examine_unit, &enabled);
	root_folder_close(&enabled.root);
}
