/* SPDX-License-Identifier: Apache-2.0 */
/* For tests, after cmocka's headers: no descriptor is left in this process, until they are given back. */
#ifndef TESTS_UNIT_DESCRIPTORS_H
#define TESTS_UNIT_DESCRIPTORS_H

#include <fcntl.h>
#include <sys/resource.h>
#include <unistd.h>

/* Returns the limit before, for descriptors_give_back. */
static inline struct rlimit descriptors_take_away(void)
{
	struct rlimit before;
	int lowest = open("/dev/null", O_RDONLY | O_CLOEXEC);

	assert_true(lowest >= 0);
	close(lowest);
	assert_int_equal(getrlimit(RLIMIT_NOFILE, &before), 0);
	const struct rlimit none = {.rlim_cur = (rlim_t)lowest, .rlim_max = before.rlim_max};
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &none), 0);
	return before;
}

static inline void descriptors_give_back(struct rlimit before)
{
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &before), 0);
}

#endif
