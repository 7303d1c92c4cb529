/* SPDX-License-Identifier: Apache-2.0 */
/* Waits for the end of a child process, with a limit. A target may hold up a child that works on it: the
 * target may stop the child, or never answer when the child reads the target's files and memory. */
#ifndef SAMPLER_INJECT_REAP_H
#define SAMPLER_INJECT_REAP_H

#include <stdint.h>
#include <sys/types.h>

/* Waits for the child to end, kills it after `patience_ns`, and waits a second more. A child that waits for a
 * file system cannot be killed at once: a later wait for any child reaps it, or init does. */
void reap_within(pid_t child, uint64_t patience_ns);

#endif
