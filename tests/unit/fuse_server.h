/* SPDX-License-Identifier: Apache-2.0 */
/* For tests: a FUSE file system in a mount namespace of its own, whose answers are the test's. */
#ifndef TESTS_UNIT_FUSE_SERVER_H
#define TESTS_UNIT_FUSE_SERVER_H

#include <fcntl.h>
#include <sched.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/mount.h>
#include <sys/uio.h>
#include <unistd.h>
#include <linux/fuse.h>

/* Mounts one there, for this process and those that it forks. The descriptor to serve it by; -1: not here. */
static inline int fuse_mount(const char *folder)
{
	char options[96];
	int fuse_fd = open("/dev/fuse", O_RDWR | O_CLOEXEC);

	snprintf(options, sizeof(options), "fd=%d,rootmode=40000,user_id=0,group_id=0", fuse_fd);
	if (fuse_fd >= 0 && unshare(CLONE_NEWNS) == 0 &&
	    mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) == 0 &&
	    mount("heaptap-test", folder, "fuse", MS_NOSUID | MS_NODEV, options) == 0)
		return fuse_fd;
	if (fuse_fd >= 0)
		close(fuse_fd);
	return -1;
}

static inline void fuse_answer(
    int fuse_fd, const struct fuse_in_header *request, int error, const void *data, size_t bytes)
{
	struct fuse_out_header header = {
	    .len = (uint32_t)(sizeof(header) + bytes), .error = error, .unique = request->unique};
	const struct iovec parts[] = {{&header, sizeof(header)}, {(void *)(uintptr_t)data, bytes}};

	(void)!writev(fuse_fd, parts, 2);
}

/* The first request. */
static inline void fuse_answer_init(int fuse_fd, const struct fuse_in_header *request)
{
	const struct fuse_init_out init = {
	    .major = FUSE_KERNEL_VERSION, .minor = 31, .max_write = 4096, .max_readahead = 4096};

	fuse_answer(fuse_fd, request, 0, &init, sizeof(init));
}

#endif
