/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reads another process' memory. A FUSE server or a userfaultfd may have to deliver a page. It may never
 * answer, and process_vm_readv(2) waits for it. So a forked child reads, and we wait for the child only for a
 * while. (/proc/PID/environ and cmdline need no child: since Linux 4.17 the kernel reads only anonymous
 * memory for them, and does not wait for a userfaultfd.)
 *
 * A child that hangs is killed and left behind. Until it has ended, and for some seconds after the kill, no
 * memory of the same user's processes is read: nobody can make us wait all the time, or fork without end. For
 * one thread. Calls of waitpid() elsewhere may reap such a child.
 */
#ifndef SAMPLER_LINUX_MEMORY_READER_H
#define SAMPLER_LINUX_MEMORY_READER_H

#include <stddef.h>
#include <sys/types.h>

typedef void memory_reader_fn(pid_t pid, void *result);

/* Calls `gather` in a child on a copy of `result` (result_bytes bytes), and copies the changed result back.
 * Returns 0, or -errno with the result unchanged. -ETIMEDOUT: the memory did not come in time, or there was
 * too much to compute. -EBUSY: that happened a moment ago for this user, or for too many users. Other errors
 * are those of fork, or of a process that does not exist. */
int memory_reader_run(memory_reader_fn *gather, pid_t pid, void *result, size_t result_bytes);

#endif
