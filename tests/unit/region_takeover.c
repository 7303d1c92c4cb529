/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Regions and libraries that are found in another process: damaged ones, copies of our library that anybody
 * may have written.
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

#include "tests/unit/region_fixture.h"
#include "tests/unit/takeover_scene.h"
#include "tests/unit/workshop.h"

enum { NOBODY = 65534 };

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

/* ---- the buffers */

/* Whether it is the buffers' own file that was found. */
static bool has_buffers(const struct region *made, const struct region *taken)
{
	const size_t at = made->offsets.buffers + BUFFER_BITMAPS_BYTES;

	made->base[at] ^= 0xff;
	return taken->buffers_fd >= 0 && taken->base[at] == made->base[at];
}

/* As a worker does that has changed its user id. */
static void cover_buffers(int fd, void *argument)
{
	const struct region *region = argument;
	char byte = (char)(mmap(region->base + region->offsets.buffers,
	                       region_buffers_bytes(&region->offsets), PROT_READ | PROT_WRITE,
	                       MAP_SHARED | MAP_ANONYMOUS | MAP_FIXED | MAP_NORESERVE, -1, 0) == MAP_FAILED);

	if (write(fd, &byte, 1) == 1)
		(void)!read(fd, &byte, 1);
}

/* Some other memory of the program's, of the very size. */
static void replace_buffers(int fd, void *argument)
{
	const struct region *region = argument;
	const size_t bytes = region_buffers_bytes(&region->offsets);
	const int other = memfd_create("heaptap", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	char byte = (char)(ftruncate(other, (off_t)bytes) != 0 ||
	    mmap(region->base + region->offsets.buffers, bytes, PROT_READ | PROT_WRITE,
	        MAP_SHARED | MAP_FIXED | MAP_NORESERVE, other, 0) == MAP_FAILED);

	if (write(fd, &byte, 1) == 1)
		(void)!read(fd, &byte, 1);
}

static void the_buffers_of_a_region(void **state)
{
	struct region made, taken;

	(void)state;
	REQUIRE_ROOT();
	fixture_open(&made, 1);
	struct stranger has = stranger_start(NULL, NULL);
	assert_int_equal(region_takeover_open(has.pid, &taken), 0);
	assert_true(has_buffers(&made, &taken));
	region_close(&taken);
	stranger_end(&has);
	region_close(&made);
}

/* A process that has them no more, alone: it has the region all the same, and nobody copies stacks to it. */
static void who_has_no_buffers(void **state)
{
	static void (*const bodies[])(int, void *) = {cover_buffers, replace_buffers};
	struct region made, taken;

	(void)state;
	REQUIRE_ROOT();
	fixture_open(&made, 1);
	for (size_t i = 0; i < sizeof(bodies) / sizeof(bodies[0]); i++) {
		struct stranger worker = start_with(bodies[i], &made);

		assert_int_equal(region_takeover_open(worker.pid, &taken), 0);
		assert_false(has_buffers(&made, &taken));
		assert_int_equal(taken.buffers_fd, -1);
		region_close(&taken);
		stranger_end(&worker);
	}
	region_close(&made);
}

/* A child of ours that has covered them; *control: closing it ends the child. */
static pid_t start_worker(struct region *region, int *control)
{
	int pair[2];
	char byte = 1;

	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair), 0);
	const pid_t worker = fork();
	if (worker == 0) {
		close(pair[0]);
		cover_buffers(pair[1], region);
		_exit(0);
	}
	close(pair[1]);
	assert_int_equal(read(pair[0], &byte, 1), 1);
	assert_int_equal(byte, 0);
	*control = pair[0];
	return worker;
}

/* Its parent has them. */
static void the_buffers_of_a_worker(void **state)
{
	int control;
	struct region made, taken;

	(void)state;
	REQUIRE_ROOT();
	fixture_open(&made, 1);
	const pid_t worker = start_worker(&made, &control);
	assert_int_equal(region_takeover_open(worker, &taken), 0);
	assert_true(has_buffers(&made, &taken));
	region_close(&taken);
	close(control);
	assert_int_equal(waitpid(worker, NULL, 0), worker);
	region_close(&made);
}

/* As an offer where there can be no file. What hides the buffers is of their size and has their name. */
static void the_buffers_of_a_worker_in_anonymous_memory(void **state)
{
	const int shared = MAP_SHARED | MAP_ANONYMOUS | MAP_NORESERVE;
	char path[128];
	int control;
	struct region made, taken;

	(void)state;
	REQUIRE_ROOT();
	fixture_open(&made, 1);
	const uint64_t bytes = region_buffers_bytes(&made.offsets);
	struct region offered = {.offsets = made.offsets, .fd = -1, .buffers_fd = -1};
	offered.base = mmap(NULL, made.offsets.end, PROT_READ | PROT_WRITE, shared, -1, 0);
	assert_ptr_not_equal(offered.base, MAP_FAILED);
	memcpy(offered.base, made.base, sizeof(struct region_header));
	unsigned char *buffers = offered.base + made.offsets.buffers;
	assert_ptr_equal(buffers, mmap(buffers, bytes, PROT_READ | PROT_WRITE, shared | MAP_FIXED, -1, 0));
	const pid_t worker = start_worker(&offered, &control);
	snprintf(path, sizeof(path), "/proc/self/map_files/%lx-%lx", (unsigned long)(uintptr_t)offered.base,
	    (unsigned long)(uintptr_t)buffers);
	assert_int_equal(region_reopen(&taken, open(path, O_RDWR | O_CLOEXEC), true), 0);
	assert_int_equal(region_takeover_buffers(&taken, worker, (uintptr_t)offered.base), 0);
	assert_true(has_buffers(&offered, &taken));
	region_close(&taken);
	close(control);
	assert_int_equal(waitpid(worker, NULL, 0), worker);
	region_close(&offered);
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
	    cmocka_unit_test(who_has_no_region),
	    cmocka_unit_test(the_buffers_of_a_region),
	    cmocka_unit_test(who_has_no_buffers),
	    cmocka_unit_test(the_buffers_of_a_worker),
	    cmocka_unit_test(the_buffers_of_a_worker_in_anonymous_memory),
	    cmocka_unit_test(a_region_that_we_would_not_have_made),
	    cmocka_unit_test(only_root_opens_another_process_mapping),
	    cmocka_unit_test_setup_teardown(
	        a_library_is_ours_or_a_copy_that_nobody_can_have_changed, workshop_open, workshop_close),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
