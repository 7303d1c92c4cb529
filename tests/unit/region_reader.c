/* SPDX-License-Identifier: Apache-2.0 */
/* Whether the sampler of a region still reads it (sampler/intake/region_takeover.h). */
#include "pprof/text/clock.h"
#include "sampler/intake/region_offer.h"
#include "sampler/intake/region_takeover.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "tests/unit/fuse_server.h"
#include "tests/unit/region_fixture.h"
#include "tests/unit/takeover_scene.h"
#include "tests/unit/workshop.h"

static void the_target_of_a_sampler_that_has_ended(void **state)
{
	struct region made, taken;

	(void)state;
	REQUIRE_ROOT();
	fixture_open(&made, 2048);
	struct stranger sampler = stranger_start(NULL, NULL), target = stranger_start(NULL, NULL);
	_Atomic uint32_t *word = &region_header(&made)->sampler_pid;
	atomic_store(word, (uint32_t)sampler.pid);
	int fd = next_fd();
	assert_int_equal(region_takeover_open(target.pid, &taken), -EBUSY);
	assert_int_equal(next_fd(), fd);
	assert_int_equal(atomic_load(word), sampler.pid);
	stranger_end(&sampler);
	assert_int_equal(region_takeover_open(target.pid, &taken), 0);
	assert_int_equal(atomic_load(word), getpid());
	assert_int_equal(taken.ino, made.ino);
	assert_int_equal(taken.key, made.key);
	assert_int_equal(taken.id, made.id);
	assert_memory_equal(&taken.offsets, &made.offsets, sizeof(taken.offsets));
	fixture_live(&made, 1, &(const struct fixture_block){.seq = 3, .size_bytes = 77});
	struct slot_copy slot;
	assert_true(region_read_slot(&taken, 1, &slot)); /* the same memory */
	assert_int_equal(slot.sample.size_bytes, 77);
	region_close(&taken);
	stranger_end(&target);
	region_close(&made);
}

/* Its number may be another process' by now, and what the target wrote there may be anything. */
static void a_number_alone_is_no_sampler(void **state)
{
	struct region made, another, taken;

	(void)state;
	REQUIRE_ROOT();
	fixture_open(&another, 1);
	struct stranger other = stranger_start(NULL, NULL); /* another session's sampler */
	fixture_open(&made, 1);
	struct stranger child = start_with(close_descriptor, &made),
	                target = start_with(close_descriptor, &made);
	region_close(&another);
	const pid_t numbers[] = {target.pid, child.pid, other.pid, 0, -1, INT32_MAX, getpid()};
	for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++) {
		atomic_store(&region_header(&made)->sampler_pid, (uint32_t)numbers[i]);
		assert_int_equal(region_takeover_open(target.pid, &taken), 0);
		region_close(&taken);
	}
	stranger_end(&other);
	stranger_end(&child);
	stranger_end(&target);
	region_close(&made);
}

/* Two that have both found that nobody reads it: one of them gets it, and nothing of the other is written. */
static void of_two_that_find_it_free_one_gets_it(void **state)
{
	struct region made, one, other;

	(void)state;
	fixture_open(&made, 1);
	struct stranger ended = stranger_start(NULL, NULL);
	const pid_t was = ended.pid;
	stranger_end(&ended);
	struct region_header *header = region_header(&made);
	atomic_store(&header->sampler_pid, (uint32_t)was);
	assert_int_equal(region_reopen(&one, dup(made.fd), false), 0);
	assert_int_equal(region_reopen(&other, dup(made.fd), false), 0);
	struct throttle effort = {0};
	struct region_offer_terms terms = {.id = 7, .key = 0x70000, .period_bytes = 4096};
	struct region_offer_terms late = {.id = 8, .key = 0x80000, .period_bytes = 8192};
	assert_false(region_takeover_may_be_read(&one, &effort, &terms.sampler_pid));
	assert_false(region_takeover_may_be_read(&other, &effort, &late.sampler_pid));
	assert_int_equal(region_offer_accept(&one, &terms), 0);
	assert_int_equal(region_offer_accept(&other, &late), -EBUSY);
	assert_int_equal(header->key, terms.key);
	assert_int_equal(header->region_id, terms.id);
	assert_int_equal(atomic_load(&header->period_bytes), terms.period_bytes);
	assert_int_equal(atomic_load(&header->sampler_pid), getpid());
	region_close(&one);
	region_close(&other);
	region_close(&made);
}

static void open_many(int fd, void *argument)
{
	const uint32_t *count = argument;
	char byte = 0;

	for (uint32_t i = 0; i < *count; i++)
		byte = (char)(byte | (dup(fd) < 0));
	if (write(fd, &byte, 1) == 1)
		(void)!read(fd, &byte, 1);
}

/* Each of its regions may name a process with as many descriptors as it likes. */
static void a_process_with_many_descriptors_is_not_counted_for_ever(void **state)
{
	enum { DESCRIPTORS = 3000, REGIONS = 30 };
	const uint32_t second = 1 << 14;
	uint32_t count = DESCRIPTORS;
	struct throttle effort = {0};
	uint32_t whom;
	struct rlimit limit, before;
	struct region made;
	char byte;

	(void)state;
	assert_int_equal(getrlimit(RLIMIT_NOFILE, &before), 0);
	limit = (struct rlimit){.rlim_cur = before.rlim_max, .rlim_max = before.rlim_max};
	if (limit.rlim_max < DESCRIPTORS + 100 || setrlimit(RLIMIT_NOFILE, &limit) != 0) {
		print_message("a process may not have so many descriptors\n");
		skip();
	}
	fixture_open(&made, 2048);
	struct stranger other = stranger_start(open_many, &count);
	assert_int_equal(read(other.fd, &byte, 1), 1);
	assert_int_equal(byte, 0);
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &before), 0);
	close(made.fd); /* the child has both files too, before all others */
	close(made.buffers_fd);
	made.ino += 1000; /* another one */
	atomic_store(&region_header(&made)->sampler_pid, (uint32_t)other.pid);
	assert_false(region_takeover_may_be_read(&made, &effort, &whom));
	assert_in_range(effort.left, second - DESCRIPTORS - 100, second - DESCRIPTORS);
	uint64_t looked_at = second - effort.left, since_ns = effort.filled_ns, seconds = 0;
	uint32_t left = effort.left;
	for (int i = 0; i < REGIONS; i++) {
		bool read = region_takeover_may_be_read(&made, &effort, &whom);
		bool anew = effort.filled_ns != since_ns;

		seconds += anew;
		looked_at += (anew ? second : left) - effort.left;
		since_ns = effort.filled_ns;
		left = effort.left;
		assert_true(read == !left); /* or it is not known */
	}
	assert_in_range(looked_at, 1, (seconds + 1) * second);
	stranger_end(&other);
	atomic_store(&region_header(&made)->sampler_pid, (uint32_t)other.pid);
	/* It has ended, which is known at once even if others have used up everything. */
	effort = (struct throttle){.filled_ns = clock_now_ns()};
	assert_false(region_takeover_may_be_read(&made, &effort, &whom));
	atomic_store(&region_header(&made)->sampler_pid, 0);
	assert_false(region_takeover_may_be_read(&made, &effort, &whom));
	munmap(made.base, made.offsets.end);
}

/* ---- a file of another file system, with a name as memory has it */

enum { ASKED_NODE = 2 };

/* A file system with one file, under any name. Notes that its attributes are asked for, or it is opened. */
static void serve_fuse(int fuse_fd, _Atomic int *asked)
{
	const struct fuse_attr attributes = {.ino = ASKED_NODE, .mode = S_IFREG | 0644, .nlink = 1};
	const struct fuse_entry_out entry = {.nodeid = ASKED_NODE, .attr = attributes};
	const struct fuse_open_out opened = {0};
	static char text[1 << 16];
	const struct fuse_in_header *request = (const void *)text;

	while (read(fuse_fd, text, sizeof(text)) > 0) {
		if (request->opcode == FUSE_GETATTR && request->nodeid == ASKED_NODE)
			atomic_store(asked, 1);
		if (request->opcode == FUSE_INIT)
			fuse_answer_init(fuse_fd, request);
		else if (request->opcode == FUSE_LOOKUP)
			fuse_answer(fuse_fd, request, 0, &entry, sizeof(entry));
		else if (request->opcode == FUSE_OPEN) {
			atomic_store(asked, 1);
			fuse_answer(fuse_fd, request, 0, &opened, sizeof(opened));
		} else if (request->opcode != FUSE_FORGET && request->opcode != FUSE_BATCH_FORGET)
			fuse_answer(fuse_fd, request, -EIO, NULL, 0);
	}
}

/* Opens and maps the file, and leaves the mount without a place in any tree: the path that others see is
 * that of a file in memory. */
static bool open_asked(const char *folder, const char *name, _Atomic int *asked)
{
	char path[PATH_MAX];
	int fuse_fd = fuse_mount(folder);

	if (fuse_fd < 0)
		return false;
	if (fork() == 0) { /* ends when the file is closed: with us */
		serve_fuse(fuse_fd, asked);
		_exit(0);
	}
	snprintf(path, sizeof(path), "%s/%s", folder, name);
	int fd = open(path, O_RDONLY);
	close(fuse_fd);
	return fd >= 0 && mmap(NULL, REGION_PAGE_BYTES, PROT_READ, MAP_SHARED, fd, 0) != MAP_FAILED &&
	    umount2(folder, MNT_DETACH) == 0;
}

struct asking {
	struct region *region; /* NULL: it has none */
	const char *folder, *name;
	_Atomic int *asked;
};

static void hold_asked(int fd, void *argument)
{
	const struct asking *asking = argument;
	char byte;

	if (asking->region)
		close(asking->region->fd);
	byte = (char)!open_asked(asking->folder, asking->name, asking->asked);
	if (write(fd, &byte, 1) == 1)
		(void)!read(fd, &byte, 1);
}

/* A process says that it reads the region, and the files that it has open do not answer: none is asked. */
static void nobody_is_asked_who_a_file_is(void **state)
{
	const struct workshop *shop = *state;
	struct region made;
	char byte, path[64];
	bool found = false;

	REQUIRE_ROOT();
	_Atomic int *asked =
	    mmap(NULL, sizeof(*asked), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	assert_ptr_not_equal(asked, MAP_FAILED);
	fixture_open(&made, 1);
	struct asking asking = {&made, workshop_path(shop, "."), "memfd:x", asked};
	struct stranger other = stranger_start(hold_asked, &asking);
	assert_int_equal(read(other.fd, &byte, 1), 1);
	for (int fd = 0; fd < 64 && !found; fd++) {
		char link[64] = "";

		snprintf(path, sizeof(path), "/proc/%d/fd/%d", (int)other.pid, fd);
		found = readlink(path, link, sizeof(link) - 1) > 0 && strcmp(link, "/memfd:x") == 0;
	}
	if (byte == 0) {
		assert_true(found);
		atomic_store(&region_header(&made)->sampler_pid, (uint32_t)other.pid);
		atomic_store(asked, 0);
		assert_false(region_takeover_is_read(&made));
		assert_int_equal(atomic_load(asked), 0);
		struct stat status;
		(void)stat(path, &status);
		assert_int_equal(atomic_load(asked), 1); /* such a question is heard there */
	}
	stranger_end(&other);
	munmap((void *)(uintptr_t)asked, sizeof(*asked));
	region_close(&made);
	if (byte != 0) {
		print_message("no FUSE file system can be mounted here\n");
		skip();
	}
}

/* A mapping of it is no region, nor is it opened to find that out. */
static void a_file_of_a_regions_name_is_not_opened(void **state)
{
	struct region taken;
	char byte;

	REQUIRE_ROOT();
	_Atomic int *asked =
	    mmap(NULL, sizeof(*asked), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	assert_ptr_not_equal(asked, MAP_FAILED);
	struct asking asking = {NULL, workshop_path(*state, "."), "memfd:heaptap (deleted)", asked};
	struct stranger target = stranger_start(hold_asked, &asking);
	assert_int_equal(read(target.fd, &byte, 1), 1);
	if (byte == 0) {
		assert_int_equal(atomic_load(asked), 1); /* by the target */
		atomic_store(asked, 0);
		assert_int_equal(region_takeover_open(target.pid, &taken), -ENOENT);
		assert_int_equal(region_takeover_sampler(target.pid), 0);
		assert_int_equal(atomic_load(asked), 0);
	}
	stranger_end(&target);
	munmap((void *)(uintptr_t)asked, sizeof(*asked));
	if (byte != 0) {
		print_message("no FUSE file system can be mounted here\n");
		skip();
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(the_target_of_a_sampler_that_has_ended),
	    cmocka_unit_test(a_number_alone_is_no_sampler),
	    cmocka_unit_test(of_two_that_find_it_free_one_gets_it),
	    cmocka_unit_test(a_process_with_many_descriptors_is_not_counted_for_ever),
	    cmocka_unit_test_setup_teardown(nobody_is_asked_who_a_file_is, workshop_open, workshop_close),
	    cmocka_unit_test_setup_teardown(
	        a_file_of_a_regions_name_is_not_opened, workshop_open, workshop_close),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
