/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A descriptor that stands for one process, even after its pid was given to another process. It is a pidfd
 * (pidfd_open(2), Linux 5.3), or the folder /proc/PID, which goes with the process, if the kernel has no
 * pidfds or a filter refuses the call.
 */
#ifndef SAMPLER_LINUX_PIDFD_H
#define SAMPLER_LINUX_PIDFD_H

#include <stdbool.h>
#include <sys/types.h>

/*
 * Returns a descriptor, which the caller closes; -ESRCH if there is no such process; or -errno. A folder
 * cannot be waited for (epoll_ctl(2) refuses it with EPERM): the caller must ask now and then whether the
 * process has ended.
 */
int pidfd_open_process(pid_t pid);

/* Have all threads of the process ended? The process may still be a zombie. */
bool pidfd_has_ended(int fd);

/* Does the pid still mean this process? It does while the process runs or is a zombie. False if that is
 * unknown. */
bool pidfd_holds_pid(int fd);

#endif
