/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The trial of a new /etc/ld.so.preload before it is written: programs are run under it in a mount
 * namespace of their own, where only they see it, and once more without it. Each must end as it does
 * without, with the same output.
 *
 * 	true         a program at all
 * 	sh           pipes, forks and an exit status
 * 	python3      an interpreter with modules, if there is one
 * 	su --help    a set-user-id program started by another user: the library must stay inert there
 * 	threads      eight threads that allocate, and free each other's blocks (heaptap itself)
 */
#ifndef SAMPLER_ENABLE_PRELOAD_TRIAL_H
#define SAMPLER_ENABLE_PRELOAD_TRIAL_H

#include <stddef.h>

/* text: what the file would hold. 0; -EPERM with `reason`: a program did not run as it does without it, or
 * none can be tried here. */
int preload_trial_run(const char *text, char *reason, size_t reason_bytes);

/* The eight threads: the program heaptap is started again for them, with this in its environment. Returns
 * an exit status. */
#define PRELOAD_TRIAL_VARIABLE "HEAPTAP_TRIAL_THREADS"
int preload_trial_threads(void);

#endif
