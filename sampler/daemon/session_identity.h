/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which session a daemon's profiles belong to: one for each boot of the machine, whichever daemon wrote them,
 * so that a process' profiles before and after a restart are of one series (pprof/profile/origin.h).
 */
#ifndef SAMPLER_DAEMON_SESSION_IDENTITY_H
#define SAMPLER_DAEMON_SESSION_IDENTITY_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

enum { SESSION_BOOT_BYTES = 37 };

struct session_identity {
	char boot[SESSION_BOOT_BYTES]; /* /proc/sys/kernel/random/boot_id */
	int64_t unix_ns;               /* when the first daemon of this boot began, on both clocks */
	uint64_t monotonic_ns;
	pid_t pid; /* its */
};

/* Pure: from the file's text; false: damaged. */
bool session_identity_parse(struct session_identity *identity, const char *text);

/* Reads the file, or begins a session and writes it. 0, or -errno of writing: the identity is good for this
 * daemon alone then. */
int session_identity_open(struct session_identity *identity, const char *path);

#endif
