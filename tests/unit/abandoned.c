/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which offers in anonymous memory somebody still has: real memory, and real processes that have it mapped
 * and sleep. What the kernel is asked is counted.
 */
#include "proto/region_layout.h"
#include "sampler/books/arrivals.h"
#include "sampler/books/program_run.h"
#include "sampler/books/registry_look.h"
#include "sampler/intake/launch.h"

#include <fcntl.h>
#include <inttypes.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include <cmocka.h>

#include "tests/unit/stranger.h"

enum { OFFERS = 16, PIDS = 1 << 22 };

static struct modules *modules;
static struct memory_bound memory;
static struct intake intake;
static struct probe probe;
static struct launch launch;
static struct registry registry;
static struct region *regions[OFFERS];
static struct stranger strangers[OFFERS];
static uint8_t openings[PIDS]; /* of /proc/PID/maps, by the pid */

/* Of the sampler: how it reads the maps of a process. */
FILE *fopen(const char *restrict path, const char *restrict mode)
{
	int pid, length = 0;

	if (sscanf(path, "/proc/%d/maps%n", &pid, &length) == 1 && length && !path[length] && pid > 0 &&
	    pid < PIDS)
		openings[pid]++;
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	return fd < 0 ? NULL : fdopen(fd, mode);
}

static uint64_t inode_at(const void *base)
{
	char line[4352];
	uint64_t start, ino, found = 0;
	FILE *maps = fopen("/proc/self/maps", "r");

	while (fgets(line, sizeof(line), maps))
		if (sscanf(line, "%" SCNx64 "-%*s %*s %*s %*s %" SCNu64, &start, &ino) == 2 &&
		    start == (uintptr_t)base)
			found = ino;
	fclose(maps);
	return found;
}

static struct region *make_anonymous(void)
{
	struct region *region = calloc(1, sizeof(*region));

	*region = (struct region){
	    .fd = -1, .buffers_fd = -1, .segments = 1, .large_buffers = 1, .anonymous = true, .sparse = true};
	region_lay_out(&region->offsets, 1, 1);
	region->base = mmap(NULL, region->offsets.end, PROT_READ | PROT_WRITE,
	    MAP_SHARED | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	assert_ptr_not_equal(region->base, MAP_FAILED);
	region->ino = inode_at(region->base);
	assert_int_not_equal(region->ino, 0);
	atomic_store(&region_header(region)->state, REGION_OFFERED);
	return region;
}

static int begin(void **state)
{
	(void)state;
	modules = modules_new(16);
	if (!modules || intake_init(&intake, modules, &memory, 0, false) != 0)
		return -1;
	probe = (struct probe){.backend = BACKEND_COPY};
	registry = (struct registry){.setup = {.intake = &intake,
	                                 .probe = &probe,
	                                 .modules = modules,
	                                 .launch = &launch,
	                                 .epoll_fd = -1,
	                                 .verbosity = -1}};
	registry_init(&registry);
	for (int i = 0; i < OFFERS; i++)
		regions[i] = make_anonymous();
	return 0;
}

static int end(void **state)
{
	(void)state;
	registry_fini(&registry);
	intake_fini(&intake);
	modules_free(modules);
	return 0;
}

/* It has one of them alone. */
static void keep_one(int fd, void *argument)
{
	char byte = 1;

	for (int i = 0; i < OFFERS; i++)
		if (regions[i] != argument)
			munmap(regions[i]->base, regions[i]->offsets.end);
	if (write(fd, &byte, 1) == 1)
		(void)!read(fd, &byte, 1);
}

static struct stranger start(struct region *region)
{
	char byte;
	struct stranger stranger = stranger_start(keep_one, region);

	assert_int_equal(read(stranger.fd, &byte, 1), 1);
	return stranger;
}

static struct program_run *take(struct region *region, pid_t pid)
{
	const struct arrivals_offer offer = {.region = region, .pid = pid};

	assert_int_equal(arrivals_offer(&registry, &offer), 0);
	struct program_run *run = books_run_of_region(&intake.books, region->ino);
	assert_non_null(run);
	run->claimed_ns = 1; /* long ago */
	return run;
}

static void linger(void)
{
	registry.looks.linger_ns = 0;
	registry.abandoned_looks = (struct throttle){0};
	registry_look_runs(&registry);
}

static size_t count_runs(void)
{
	return intake.books.runs.count;
}

/* Nobody knows who has them: each process is looked at once for all of them. Then they are known. */
static void offers_of_processes_that_sleep_cost_a_look_each(void **state)
{
	(void)state;
	for (int i = 0; i < OFFERS; i++) {
		strangers[i] = start(regions[i]);
		take(regions[i], 0);
	}
	memset(openings, 0, sizeof(openings));
	linger();
	assert_int_equal(count_runs(), OFFERS);
	for (int pid = 0; pid < PIDS; pid++)
		assert_in_range(openings[pid], 0, 1);
	linger();
	assert_int_equal(count_runs(), OFFERS);
	for (int i = 0; i < OFFERS; i++) {
		assert_int_equal(openings[strangers[i].pid], 2);
		openings[strangers[i].pid] = 0;
	}
	for (int pid = 0; pid < PIDS; pid++)
		assert_in_range(openings[pid], 0, 1);
	for (int i = 0; i < OFFERS; i++)
		stranger_end(&strangers[i]);
	linger();
	assert_true(registry_empty(&registry));
}

/* Whoever made the offer is asked at once, and its child when it has ended. */
static void an_offer_lasts_as_long_as_somebody_has_it(void **state)
{
	(void)state;
	struct stranger first = start(regions[0]), second = start(regions[0]);
	struct program_run *run = take(regions[0], first.pid);
	memset(openings, 0, sizeof(openings));
	linger();
	assert_int_equal(run->mapped.by, first.pid);
	assert_int_equal(openings[first.pid], 1);
	assert_int_equal(openings[1], 0);
	stranger_end(&first);
	linger();
	assert_int_equal(count_runs(), 1);
	assert_int_equal(run->mapped.by, second.pid);
	stranger_end(&second);
	linger();
	assert_true(registry_empty(&registry));
	for (int i = 1; i < OFFERS; i++) {
		munmap(regions[i]->base, regions[i]->offsets.end);
		free(regions[i]);
	}
}

/* However many there are, and however long the lists of their mappings: nearly all of the time is for
 * samples. */
static void between_two_looks_there_is_a_rest(void **state)
{
	(void)state;
	for (int i = 0; i < OFFERS; i++)
		take(regions[i], 0);
	linger();
	assert_true(registry_empty(&registry)); /* nobody had them */
	assert_true(registry.abandoned_looks.left <= 0);
	regions[0] = make_anonymous();
	take(regions[0], 0);
	registry.looks.linger_ns = 0;
	registry.abandoned_looks = (struct throttle){.left = -1, .filled_ns = UINT64_MAX};
	registry_look_runs(&registry);
	assert_int_equal(count_runs(), 1);
	linger();
	assert_true(registry_empty(&registry));
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, begin, end)
	const struct CMUnitTest tests[] = {
	    TEST(offers_of_processes_that_sleep_cost_a_look_each),
	    TEST(an_offer_lasts_as_long_as_somebody_has_it),
	    TEST(between_two_looks_there_is_a_rest),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
