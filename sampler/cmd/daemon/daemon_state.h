/* SPDX-License-Identifier: Apache-2.0 */
/* A running daemon, for the files of this folder. */
#ifndef SAMPLER_CMD_DAEMON_DAEMON_STATE_H
#define SAMPLER_CMD_DAEMON_DAEMON_STATE_H

#include "pprof/store/store.h"
#include "sampler/books/arrivals.h"
#include "sampler/cmd/daemon/crash_guard.h"
#include "sampler/cmd/daemon/finder.h"
#include "sampler/cmd/daemon/load_limiter.h"
#include "sampler/cmd/daemon/off_switch.h"
#include "sampler/cmd/daemon/process_table.h"
#include "sampler/cmd/daemon/retention.h"
#include "sampler/cmd/daemon/rules.h"
#include "sampler/core/attach_job.h"
#include "sampler/core/control_socket.h"
#include "sampler/core/core.h"
#include "sampler/intake/region_takeover.h"

#include <limits.h>

enum {
	DAEMON_NOTE_BYTES = 1024,
	DAEMON_BOOT_BYTES = 37,
	DAEMON_ATTACH_JOBS = 16, /* so many processes are attached to at the same time */
};

/* The session that a daemon's profiles belong to. Each boot of the machine has one session, however often the
 * daemon restarts. So the profiles of a process before and after a restart are one series
 * (pprof/model/origin.h). */
struct daemon_session {
	char boot[DAEMON_BOOT_BYTES]; /* /proc/sys/kernel/random/boot_id */
	int64_t unix_ns;              /* when the first daemon of this boot began, on both clocks */
	uint64_t monotonic_ns;
	pid_t pid; /* of that daemon */
};

struct daemon {
	struct heap_capture_options heap_options;
	int verbosity;      /* as in struct options */
	const char *config; /* --config; NULL: the user's own file */
	char store_path[PATH_MAX], guard_path[PATH_MAX];
	struct rules *rules;          /* in force */
	char note[DAEMON_NOTE_BYTES]; /* why a newer configuration is not in force; "" if nothing is wrong */

	struct core core; /* core.output gives the host's name only: the store names the files */
	struct store *store;
	struct retention retention;
	struct daemon_session session;

	struct finder *finder;
	struct process_table processes;
	struct crash_guard *guard;
	int guard_error; /* of the last attempt to save the guard's file */
	struct off_switch off;
	struct load_limiter load;
	uint64_t round;         /* the sweep that is under way, as a number */
	uint64_t policy_checks; /* how often all processes were matched with the rules again */
	uint32_t next_region;
	struct library_copy library_copy;                  /* the attach library; fd -1: not opened yet */
	struct attach_job attach_jobs[DAEMON_ATTACH_JOBS]; /* an empty job is free */

	char socket_path[CONTROL_PATH_BYTES];
	struct throttle effort; /* of finding out whether others read a region */
	bool ending;
	int64_t since_unix_ns;
	/* When the service manager got the last STATUS and WATCHDOG, and when periods were last tuned. */
	uint64_t status_ns, watchdog_ns, tuned_ns;
};

/* daemon_list.c: writes the daemon's answer to "list" (sampler/core/control_list.h). */
void daemon_list_write(struct core *core, struct control_list_writer *writer);

/* daemon_list.c: does the list have such a process as profiled, without a sample? */
bool daemon_list_is_unsampled(const struct core *core, const struct control_request *request);

/* ---- daemon_configuration.c */

/* Reads the configuration for the first time. store: --store; NULL: as configured. 0, or -errno with a line
 * on stderr. */
int daemon_configuration_open(struct daemon *daemon, const char *store);
void daemon_configuration_close(struct daemon *daemon);

/* Opens the store, and reads the files beside the profiles: the session's identity, the executables that
 * are denied. A store that cannot be written is no error: the next snapshot tries again. 0 or -ENOMEM. */
int daemon_configuration_open_store(struct daemon *daemon);

/* Parses the text of the session's file. False if it is damaged. Pure. */
bool daemon_session_parse(struct daemon_session *session, const char *text);

/* Reads the session's file; if there is none of this boot, begins a session and writes the file. 0, or -errno
 * if it cannot be written: then the session is good for this daemon only. */
int daemon_session_open(struct daemon_session *session, const char *path);

/* Reads the configuration again, and asks the new rules about every process. After an error, which is
 * logged, the old configuration stays in force. */
void daemon_configuration_reload(struct daemon *daemon);

#endif
