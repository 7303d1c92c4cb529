/* SPDX-License-Identifier: Apache-2.0 */
/* For tests of regions in other processes, after cmocka's headers: processes that have a region mapped, as
 * targets and samplers do. */
#ifndef TESTS_UNIT_TAKEOVER_SCENE_H
#define TESTS_UNIT_TAKEOVER_SCENE_H

#include "sampler/intake/region.h"
#include "tests/unit/stranger.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#define REQUIRE_ROOT()                                                       \
	do {                                                                 \
		if (geteuid() != 0) {                                        \
			print_message("only root opens others' mappings\n"); \
			skip();                                              \
		}                                                            \
	} while (0)

/* The lowest descriptor that is free: whoever keeps one open raises it. */
static inline int next_fd(void)
{
	int fd = open("/dev/null", O_RDONLY | O_CLOEXEC);

	close(fd);
	return fd;
}

static inline void forget(int fd, void *argument)
{
	const struct region *region = argument;
	char byte = (char)munmap(region->base, region->offsets.end);

	if (write(fd, &byte, 1) == 1)
		(void)!read(fd, &byte, 1);
}

/* As a target does that has mapped it. */
static inline void close_descriptor(int fd, void *argument)
{
	const struct region *region = argument;
	char byte = (char)close(region->fd);

	if (write(fd, &byte, 1) == 1)
		(void)!read(fd, &byte, 1);
}

static inline struct stranger start_with(void (*body)(int fd, void *argument), struct region *region)
{
	char byte;
	struct stranger stranger = stranger_start(body, region);

	assert_int_equal(read(stranger.fd, &byte, 1), 1);
	assert_int_equal(byte, 0);
	return stranger;
}

static inline struct stranger start_without(struct region *region)
{
	return start_with(forget, region);
}

#endif
