/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Whether a seccomp filter may be in force. The kernel tells it by a system call only, which a filter may
 * punish. So it is asked at the start; later it is known from the program's own calls of prctl. Of a filter
 * that root installs by the raw seccomp call, without PR_SET_NO_NEW_PRIVS, nothing is known.
 */
#ifndef PRELOAD_SECCOMP_FILTER_H
#define PRELOAD_SECCOMP_FILTER_H

#include <stdbool.h>

/* One may be in force from now on. */
void seccomp_filter_note(void);

/* True: of the system calls that we need only those may be made that the program makes itself. */
bool seccomp_filter_is_noted(void);

#endif
