/* SPDX-License-Identifier: Apache-2.0 */
/* For tests of the hook's books, after cmocka's headers: a region, and this process in its place 0. */
#ifndef TESTS_UNIT_PLACE_SCENE_H
#define TESTS_UNIT_PLACE_SCENE_H

#include "preload/claim.h"
#include "preload/sample_clock.h"
#include "preload/tables.h"
#include "preload/thread.h"
#include "sampler/intake/region.h"

#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

static struct region run_region;

/* Without a wiped page: as under a seccomp filter. */
static inline struct claim_setup make_region(bool wiped)
{
	const struct region_options options = {.period_bytes = 64,
	    .dump_bytes = 8192,
	    .clock_id = CLOCK_MONOTONIC,
	    .live_max = 64 << 10,
	    .mode = REGION_MODE_COPY};

	assert_int_equal(0, region_open(&run_region, 7, 0xabcd0000, &options));
	void *page = NULL;
	if (wiped) {
		page = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
		assert_int_equal(0, madvise(page, 4096, MADV_WIPEONFORK));
	}
	thread_open((uint32_t)getpid(), true);
	sample_clock_open(CLOCK_MONOTONIC, CLOCK_ASK);
	const struct tables_wish wish = {.period_bytes = 1, .segments = run_region.segments};
	assert_true(tables_open(&wish));
	return (struct claim_setup){
	    .place = {.base = run_region.base,
	        .offsets = run_region.offsets,
	        .segments = run_region.segments,
	        .start_segments = run_region.segments,
	        .large_buffers = run_region.large_buffers,
	        .key = run_region.key},
	    .pid = (uint32_t)getpid(),
	    .wiped = page,
	};
}

static inline void open_wiped(void)
{
	const struct claim_setup with = make_region(true);

	claim_open(&with);
}

static inline void open_unwiped(void)
{
	const struct claim_setup with = make_region(false);

	claim_open(&with);
}

/* As a program run that has offered its region; the mode says already that there is a sampler. */
static inline void open_offered(void)
{
	const struct claim_setup with = make_region(false);

	claim_offer(&with);
}

static inline void in_child(void (*open)(void), void (*test)(void **))
{
	pid_t pid = fork();

	if (pid == 0) {
		open();
		test(NULL);
		/* a failed assertion ends elsewhere: the child's copy of cmocka goes on, and exits otherwise
		 * */
		_exit(0);
	}
	int status = 1;
	waitpid(pid, &status, 0);
	assert_int_equal(0, status);
}

static inline void in_wiped_child(void **test)
{
	in_child(open_wiped, *test);
}

static inline void in_unwiped_child(void **test)
{
	in_child(open_unwiped, *test);
}

static inline void in_offered_child(void **test)
{
	in_child(open_offered, *test);
}

/* Each test needs books of its own: it runs in a process of its own. */
#define IN_CHILD(test, child)                          \
	{                                              \
#test, child, NULL, NULL, (void *)test \
	}
#define ISOLATED(test) IN_CHILD(test, in_wiped_child)
#define UNWIPED(test)  IN_CHILD(test, in_unwiped_child)
#define OFFERED(test)  IN_CHILD(test, in_offered_child)

#endif
