/* SPDX-License-Identifier: Apache-2.0 */
/* The copy of libheaptap-attach.so for the processes of a session: a file in memory, with the request in its
 * data, which is another for each process. */
#ifndef SAMPLER_ATTACH_DELIVERY_H
#define SAMPLER_ATTACH_DELIVERY_H

#include <stdint.h>
#include <sys/types.h>

#define DELIVERY_NAME "libheaptap-attach.so"

struct delivery {
	int fd;
	uint64_t request_offset;
};

/* Reads the library at `path`. Returns 0; -ENOEXEC: it is of another version; or -errno. */
int delivery_open(struct delivery *delivery, const char *path);
void delivery_close(struct delivery *delivery);

/* Where the library is to find its region: pid and descriptor as the process sees them. */
int delivery_address(const struct delivery *delivery, pid_t holder, int region_fd);

#endif
