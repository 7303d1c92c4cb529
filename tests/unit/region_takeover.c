/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Regions and libraries that are found in another process: of a sampler that lives or has ended, damaged
 * ones, copies of our library that anybody may have written.
 */
#include "sampler/intake/region_takeover.h"
#include "pprof/text/clock.h"
#include "sampler/intake/region_offer.h"

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
#include "tests/unit/stranger.h"
#include "tests/unit/workshop.h"

enum { NOBODY = 65534 };

#define REQUIRE_ROOT()                                                       \
	do {                                                                 \
		if (geteuid() != 0) {                                        \
			print_message("only root opens others' mappings\n"); \
			skip();                                              \
		}                                                            \
	} while (0)

/* The lowest descriptor that is free: whoever keeps one open raises it. */
static int next_fd(void)
{
	int fd = open("/dev/null", O_RDONLY | O_CLOEXEC);

	close(fd);
	return fd;
}

static void forget(int fd, void *argument)
{
	const struct region *region = argument;
	char byte = (char)munmap(region->base, region->offsets.end);

	if (write(fd, &byte, 1) == 1)
		(void)!read(fd, &byte, 1);
}

/* As a target does that has mapped it. */
static void close_descriptor(int fd, void *argument)
{
	const struct region *region = argument;
	char byte = (char)close(region->fd);

	if (write(fd, &byte, 1) == 1)
		(void)!read(fd, &byte, 1);
}

static struct stranger start_with(void (*body)(int fd, void *argument), struct region *region)
{
	char byte;
	struct stranger stranger = stranger_start(body, region);

	assert_int_equal(read(stranger.fd, &byte, 1), 1);
	assert_int_equal(byte, 0);
	return stranger;
}

static struct stranger start_without(struct region *region)
{
	return start_with(forget, region);
}

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
	close(made.fd); /* the child has it too, before all others */
	made.ino++;     /* another one */
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

static void who_has_no_region(void **state)
{
	struct region made, taken;

	(void)state;
	fixture_open(&made, 1);
	struct stranger other = start_without(&made), ended = stranger_start(NULL, NULL);
	assert_int_equal(region_takeover_open(other.pid, &taken), -ENOENT);
	pid_t was = ended.pid;
	stranger_end(&ended);
	int error = region_takeover_open(was, &taken);
	assert_true(error == -ESRCH || error == -ENOENT); /* -ENOENT: its new parent has not reaped it yet */
	stranger_end(&other);
	region_close(&made);
}

/* ---- regions of another version, or of nobody's making */

/* A memfd of the region's name with these bytes, mapped here: the strangers to come have it too. */
static unsigned char *map_forged(const struct region_header *header, size_t bytes, bool sealed)
{
	int fd = memfd_create("heaptap", MFD_CLOEXEC | MFD_ALLOW_SEALING);

	assert_true(fd >= 0);
	assert_int_equal(ftruncate(fd, (off_t)bytes), 0);
	assert_int_equal(pwrite(fd, header, sizeof(*header), 0), sizeof(*header));
	if (sealed)
		assert_int_equal(fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW), 0);
	void *base = mmap(NULL, REGION_PAGE_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	assert_ptr_not_equal(base, MAP_FAILED);
	close(fd);
	return base;
}

static int takeover_of_forged(const struct region_header *header, size_t bytes, bool sealed)
{
	struct region taken;
	unsigned char *base = map_forged(header, bytes, sealed);
	struct stranger target = stranger_start(NULL, NULL);
	int fd = next_fd();
	int error = region_takeover_open(target.pid, &taken);

	if (error == 0)
		region_close(&taken);
	assert_int_equal(next_fd(), fd);
	stranger_end(&target);
	munmap(base, REGION_PAGE_BYTES);
	return error;
}

static void a_region_that_we_would_not_have_made(void **state)
{
	struct region made;
	struct region_header good, bad;

	(void)state;
	REQUIRE_ROOT();
	fixture_open(&made, 1024);
	const size_t bytes = made.offsets.end;
	memcpy((void *)&good, (const void *)region_header(&made), sizeof(good));
	region_close(&made);
	assert_int_equal(takeover_of_forged(&good, bytes, true), 0);
	assert_int_equal(takeover_of_forged(&good, bytes, false), -EPROTO); /* could be cut under our feet */
	assert_int_equal(takeover_of_forged(&good, bytes - REGION_PAGE_BYTES, true), -EPROTO);
	assert_int_equal(takeover_of_forged(&good, bytes + REGION_PAGE_BYTES, true), -EPROTO);
	const struct {
		size_t offset;
		uint32_t word;
	} lies[] = {{offsetof(struct region_header, magic), 0},
	    {offsetof(struct region_header, abi), REGION_ABI - 1},
	    {offsetof(struct region_header, abi), REGION_ABI + 1},
	    {offsetof(struct region_header, segments), 0}, {offsetof(struct region_header, segments), 2},
	    {offsetof(struct region_header, segments), UINT32_MAX},
	    {offsetof(struct region_header, start_segments), 0},
	    {offsetof(struct region_header, start_segments), UINT32_MAX},
	    {offsetof(struct region_header, offsets.places), 0},
	    {offsetof(struct region_header, offsets.segments), UINT32_MAX},
	    {offsetof(struct region_header, offsets.end), REGION_PAGE_BYTES}};
	for (size_t i = 0; i < sizeof(lies) / sizeof(lies[0]); i++) {
		memcpy((void *)&bad, (const void *)&good, sizeof(bad));
		memcpy((unsigned char *)&bad + lies[i].offset, &lies[i].word, sizeof(lies[i].word));
		assert_int_equal(takeover_of_forged(&bad, bytes, true), -EPROTO);
	}
}

/* ---- without privileges */

/* What region_takeover_open says to an ordinary user of the user's own process. */
static int takeover_by_nobody(void)
{
	struct region taken;

	if (setresgid(NOBODY, NOBODY, NOBODY) != 0 || setresuid(NOBODY, NOBODY, NOBODY) != 0)
		return 1;
	prctl(PR_SET_DUMPABLE, 1); /* the process that follows lets its user read its maps */
	struct stranger target = stranger_start(NULL, NULL);
	int error = region_takeover_open(target.pid, &taken);
	stranger_end(&target);
	return -error;
}

static void only_root_opens_another_process_mapping(void **state)
{
	struct region made;
	int status;

	(void)state;
	REQUIRE_ROOT();
	fixture_open(&made, 1);
	pid_t child = fork();
	if (child == 0)
		_exit(takeover_by_nobody());
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_true(WIFEXITED(status));
	assert_int_equal(WEXITSTATUS(status), EPERM);
	region_close(&made);
}

/* ---- the library */

/* A file of the shop, mapped here as code: the strangers to come have it too. */
static void *map_code(const struct workshop *shop, const char *name)
{
	int fd = open(workshop_path(shop, name), O_RDONLY | O_CLOEXEC);

	assert_true(fd >= 0);
	void *base = mmap(NULL, REGION_PAGE_BYTES, PROT_READ | PROT_EXEC, MAP_PRIVATE, fd, REGION_PAGE_BYTES);
	assert_ptr_not_equal(base, MAP_FAILED);
	close(fd);
	return base;
}

/* region_takeover_library of `name`, mapped by another process; the descriptor must be that very file's. */
static int takeover_of_library(const struct workshop *shop, const char *name, const char *own_name)
{
	struct stat mapped, opened;
	uint64_t offset = 0;
	unsigned char *base = map_code(shop, name);
	struct stranger target = stranger_start(NULL, NULL);
	int fd = region_takeover_library(
	    target.pid, (uintptr_t)base + 0x123, workshop_path(shop, own_name), &offset);

	stranger_end(&target);
	munmap(base, REGION_PAGE_BYTES);
	if (fd < 0)
		return fd;
	assert_int_equal(offset, REGION_PAGE_BYTES + 0x123);
	assert_int_equal(stat(workshop_path(shop, name), &mapped), 0);
	assert_int_equal(fstat(fd, &opened), 0);
	assert_int_equal(opened.st_ino, mapped.st_ino);
	close(fd);
	return 0;
}

static void a_library_is_ours_or_a_copy_that_nobody_can_have_changed(void **state)
{
	const struct workshop *shop = *state;

	REQUIRE_ROOT();
	assert_true(workshop_write(shop, "a.c", "int a(void) { return 1; }\n") &&
	    workshop_write(shop, "b.c", "int b(void) { return 2; }\n"));
	assert_int_equal(workshop_run(shop,
	                     "cc -shared -fPIC -Wl,--build-id -o own.so a.c && "
	                     "cc -shared -fPIC -Wl,--build-id -o other.so b.c && "
	                     "cc -shared -fPIC -Wl,--build-id=none -o nameless.so a.c && "
	                     "cp nameless.so nameless2.so && cp own.so copy.so && "
	                     "head -c 8192 /dev/zero >no.so && chmod 755 *.so"),
	    0);
	assert_int_equal(takeover_of_library(shop, "own.so", "own.so"), 0);
	assert_int_equal(takeover_of_library(shop, "copy.so", "own.so"), 0);
	assert_int_equal(takeover_of_library(shop, "other.so", "own.so"), -EACCES);
	assert_int_equal(takeover_of_library(shop, "no.so", "own.so"), -EACCES);
	assert_int_equal(takeover_of_library(shop, "nameless2.so", "nameless.so"), -EACCES);
	assert_int_equal(takeover_of_library(shop, "own.so", "missing.so"), -EACCES);
	assert_int_equal(chmod(workshop_path(shop, "copy.so"), 0775), 0);
	assert_int_equal(takeover_of_library(shop, "copy.so", "own.so"), -EACCES);
	assert_int_equal(chmod(workshop_path(shop, "copy.so"), 0757), 0);
	assert_int_equal(takeover_of_library(shop, "copy.so", "own.so"), -EACCES);
	assert_int_equal(chmod(workshop_path(shop, "copy.so"), 0755), 0);
	assert_int_equal(chown(workshop_path(shop, "copy.so"), NOBODY, NOBODY), 0);
	assert_int_equal(takeover_of_library(shop, "copy.so", "own.so"), -EACCES);
	struct stranger target = stranger_start(NULL, NULL);
	uint64_t offset;
	assert_int_equal(
	    region_takeover_library(target.pid, 0x10, workshop_path(shop, "own.so"), &offset), -ENOENT);
	stranger_end(&target);
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
	    cmocka_unit_test(who_has_no_region),
	    cmocka_unit_test(a_region_that_we_would_not_have_made),
	    cmocka_unit_test(only_root_opens_another_process_mapping),
	    cmocka_unit_test_setup_teardown(
	        a_library_is_ours_or_a_copy_that_nobody_can_have_changed, workshop_open, workshop_close),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
