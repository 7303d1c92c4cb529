/* SPDX-License-Identifier: Apache-2.0 */
/* Ends a child process that a target may hold up. The target may stop the child, or never answer when the
 * child reads the target's files and memory. So nobody waits for such a child without a limit. */
#ifndef SAMPLER_INJECT_CHILD_H
#define SAMPLER_INJECT_CHILD_H

#include <stdint.h>
#include <sys/types.h>

/* Waits for the child to end, kills it after `patience_ns`, and waits a second more. A child that waits for a
 * file system cannot even be killed: a later wait for any child, or init, will reap it. */
void child_end(pid_t child, uint64_t patience_ns);

#endif
