/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The session that a daemon's profiles belong to. Each boot of the machine has one session, however often the
 * daemon restarts. So the profiles of a process before and after a restart are one series
 * (pprof/model/origin.h).
 */
#ifndef SAMPLER_CMD_DAEMON_SESSION_IDENTITY_H
#define SAMPLER_CMD_DAEMON_SESSION_IDENTITY_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

enum { SESSION_BOOT_BYTES = 37 };

struct session_identity {
	char boot[SESSION_BOOT_BYTES]; /* /proc/sys/kernel/random/boot_id */
	int64_t unix_ns;               /* when the first daemon of this boot began, on both clocks */
	uint64_t monotonic_ns;
	pid_t pid; /* of that daemon */
};

/* Parses the file's text. False if it is damaged. Pure. */
bool session_identity_parse(struct session_identity *identity, const char *text);

/* Reads the file; if there is none of this boot, begins a session and writes the file. 0, or -errno if it
 * cannot be written: then the identity is good for this daemon only. */
int session_identity_open(struct session_identity *identity, const char *path);

#endif
