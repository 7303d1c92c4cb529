/* SPDX-License-Identifier: Apache-2.0 */
#include "sampler/cmd/doctor/doctor_daemon.h"

#include "sampler/cmd/doctor/doctor_unit.h"
#include "sampler/cmd/doctor/finding.h"
#include "sampler/cmd/enable/enable_library.h"
#include "sampler/cmd/enable/enable_unit.h"
#include "sampler/cmd/enable/root_folder.h"
#include "sampler/core/control_client.h"
#include "sampler/inject/preload_library.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define PRELOAD_FILE "/etc/ld.so.preload"

enum { REASON_BYTES = 4096 };

/* ---- the daemon */

static void examine_target(struct findings *findings, const struct control_list *list, const char *target)
{
	char *end;
	long pid = target ? strtol(target, &end, 10) : 0;

	if (pid <= 0 || *end)
		return;
	for (size_t i = 0; i < list->process_count; i++) {
		const struct control_process *process = &list->processes[i];

		if (process->pid != pid)
			continue;
		if (process->profiled)
			finding_say(findings, FINDING_GOOD, NULL, "the daemon profiles %ld as service %s",
			    pid, process->service);
		else
			finding_say(findings, FINDING_NOTE, NULL, "the daemon does not profile %ld: %s", pid,
			    process->reason);
		return;
	}
	finding_say(findings, FINDING_NOTE, "heaptap enable UNIT, and start the service again",
	    "the daemon knows no process %ld: it does not carry the library", pid);
}

static void examine_list(struct findings *findings, const struct control_list *list)
{
	const struct control_daemon *daemon = &list->daemon;
	size_t profiled = 0;

	for (size_t i = 0; i < list->process_count; i++)
		profiled += list->processes[i].profiled;
	finding_say(findings, FINDING_GOOD, NULL,
	    "daemon %d profiles %zu of %zu processes (`heaptap status` lists them)", (int)daemon->pid,
	    profiled, list->process_count);
	if (*daemon->version && strcmp(daemon->version, HEAPTAP_VERSION) != 0)
		finding_say(findings, FINDING_NOTE, "start the daemon again: systemctl restart heaptapd",
		    "the daemon is of version %s, this program of %s", daemon->version, HEAPTAP_VERSION);
	if (*daemon->off)
		finding_say(findings, FINDING_NOTE, "heaptap enable --now", "the daemon samples nothing: %s",
		    daemon->off);
	for (size_t i = 0; i < list->denied_count; i++)
		finding_say(findings, FINDING_NOTE, NULL, "the daemon does not profile %s: %s",
		    list->denied[i].exe, list->denied[i].reason);
	for (size_t i = 0; i < list->note_count; i++)
		finding_say(findings, FINDING_NOTE, NULL, "the daemon says: %s", list->notes[i]);
}

void doctor_daemon_examine(struct findings *findings, const char *socket, const char *target)
{
	struct control_list list;
	char reason[512];
	int error = control_client_list(socket, &list, reason, sizeof(reason));

	if (error) {
		finding_say(findings, FINDING_NOTE,
		    error == -ENOENT || error == -ECONNREFUSED
		        ? "systemctl start heaptapd, or: heaptap daemon (record needs none)"
		        : NULL,
		    "%s", reason);
		return;
	}
	examine_list(findings, &list);
	examine_target(findings, &list, target);
	control_list_fini(&list);
}

/* ---- what loads the library */

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
	else if (!doctor_unit_examine(enabled->findings, &enabled->root, unit, enabled->library.path))
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

void doctor_daemon_examine_enabled(struct findings *findings)
{
	struct enabled enabled = {.findings = findings};

	if (root_folder_open(&enabled.root, NULL))
		return;
	enable_library_find(&enabled.library, &enabled.root, NULL);
	examine_machine(&enabled);
	(void)enable_unit_each(&enabled.root, examine_unit, &enabled);
	root_folder_close(&enabled.root);
}
