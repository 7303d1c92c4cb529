/* SPDX-License-Identifier: Apache-2.0 */
/* For tests of the hook's books, after cmocka's headers: a region, and this process in its place 0. */
#ifndef TESTS_UNIT_PLACE_SCENE_H
#define TESTS_UNIT_PLACE_SCENE_H

#include "preload/claim.h"
#include "preload/clock.h"
#include "preload/thread.h"
#include "sampler/region/region.h"

#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

static struct region region;

static inline void open_region(void)
{
	const struct region_options options = {.period_bytes = 64,
	    .dump_bytes = 8192,
	    .clock_id = CLOCK_MONOTONIC,
	    .live_max = 64 << 10,
	    .mode = REGION_MODE_COPY};
	assert_int_equal(0, region_open(&region, 7, 0xabcd0000, &options));
	void *page = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	assert_int_equal(0, madvise(page, 4096, MADV_WIPEONFORK));
	thread_open((uint32_t)getpid(), true);
	const struct claim_setup with = {
	    .place = {.base = region.base,
	        .offsets = region.offsets,
	        .segments = region.segments,
	        .key = region.key},
	    .pid = (uint32_t)getpid(),
	    .wiped = page,
	};
	clock_open(CLOCK_MONOTONIC, true);
	claim_open(&with);
}

/* Each test needs books of its own: it runs in a process of its own. */
static inline void in_child(void **unused)
{
	void (*test)(void **) = *unused;
	pid_t pid = fork();
	if (pid == 0) {
		open_region();
		test(NULL);
		/* a failed assertion ends elsewhere: the child's copy of cmocka goes on, and exits otherwise
		 * */
		_exit(0);
	}
	int status = 1;
	waitpid(pid, &status, 0);
	assert_int_equal(0, status);
}

#define ISOLATED(test)                                    \
	{                                                 \
#test, in_child, NULL, NULL, (void *)test \
	}

#endif
