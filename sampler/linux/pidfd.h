/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A descriptor that stands for one process, even after its pid was given to another: a pidfd (pidfd_open(2),
 * Linux 5.3) or, where the kernel has none or a filter refuses it, the folder /proc/PID, which goes with the
 * process.
 */
#ifndef SAMPLER_LINUX_PIDFD_H
#define SAMPLER_LINUX_PIDFD_H

#include <stdbool.h>
#include <sys/types.h>

/*
 * The caller closes it. -ESRCH: no such process; or -errno. A folder cannot be waited for: epoll_ctl(2)
 * refuses it with EPERM, so the end must be asked for now and then.
 */
int pidfd_open_process(pid_t pid);

/* Has the process ended, all its threads? It may still be a zombie. */
bool pidfd_has_ended(int fd);

/* Does the pid still mean this process: it runs, or nobody has waited for it? False if that is not known. */
bool pidfd_holds_pid(int fd);

#endif
