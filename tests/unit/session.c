/* SPDX-License-Identifier: Apache-2.0 */
/* What the library takes of a session: from a real pool of the sampler's, and from files that are none of it.
 */
#include "preload/session.h"
#include "proto/attach_request.h"
#include "proto/region_layout.h"

#include "proto/region_pool.h"
#include "sampler/intake/region_pool.h"

#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cmocka.h>

#include "tests/unit/workshop.h"

enum { OTHER_USER = 1000, NO_NUMBER = 65534, SIZE = F_SEAL_SHRINK | F_SEAL_GROW };

static const struct region_options options = {
    .period_bytes = 64, .clock_id = 1, .live_max = 1024, .mode = REGION_MODE_COPY};

static const char *path_of(int fd)
{
	static char path[64];

	snprintf(path, sizeof(path), "/proc/%d/fd/%d", (int)getpid(), fd);
	return path;
}

static void set_session(const char *preload, const char *value)
{
	assert_int_equal(0, preload ? setenv("LD_PRELOAD", preload, 1) : unsetenv("LD_PRELOAD"));
	assert_int_equal(0, value ? setenv(REGION_ENV, value, 1) : unsetenv(REGION_ENV));
}

/* Whether a region is got, and how many the pool has given. */
static bool gets_region(bool filtered, bool *found)
{
	struct region_header *header = session_region(filtered, found);

	if (!header)
		return false;
	assert_int_equal(REGION_MAGIC, header->magic);
	munmap(header, header->offsets.end);
	return true;
}

static void from_a_pool(void **unused)
{
	struct region_pool *pool = region_pool_new(&options);
	bool found;

	assert_non_null(pool);
	set_session("/somewhere/libheaptap.so", region_pool_env(pool));
	for (int filtered = 0; filtered < 2; filtered++) {
		assert_true(gets_region(filtered != 0, &found));
		assert_true(found);
		struct region *claimed = region_pool_next(pool);
		assert_non_null(claimed);
		region_close(claimed);
		free(claimed);
	}
	/* without a spare region it counts itself, and makes no offer */
	int regions = 0;
	while (gets_region(true, &found))
		regions++;
	assert_true(found && regions > 1);
	assert_int_equal(1, region_pool_unserved(pool));
	set_session(NULL, NULL);
	region_pool_free(pool);
}

static void only_beside_a_preload_that_names_us(void **unused)
{
	static const char *const naming[] = {"libheaptap.so", "/a/libheaptap.so", "/a/b.so:/c/libheaptap.so",
	    "/a/b.so /c/libheaptap.so", "/c/libheaptap.so:/a/b.so", " : /c/libheaptap.so"};
	static const char *const others[] = {"", " ", "/a/b.so", "/a/libheaptap.so.old",
	    "/a/otherlibheaptap.so", "/libheaptap.so/b.so", "libheaptap-attach.so", "heaptap.so"};
	struct region_pool *pool = region_pool_new(&options);
	bool found;

	assert_non_null(pool);
	for (size_t i = 0; i < sizeof(naming) / sizeof(naming[0]); i++) {
		set_session(naming[i], region_pool_env(pool));
		if (!gets_region(true, &found) || !found)
			fail_msg("'%s' does not name us", naming[i]);
	}
	for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++) {
		set_session(others[i], region_pool_env(pool));
		if (gets_region(false, &found) || found)
			fail_msg("'%s' names us", others[i]);
	}
	set_session(NULL, region_pool_env(pool));
	assert_false(gets_region(false, &found) || found);
	set_session(NULL, NULL);
	region_pool_free(pool);
}

/* A pool of another user is none, and root's own memory is not one because it is root's. */
static void a_pool_page_is_its_owners_word(void **unused)
{
	const uint64_t cookie = 0x0123456789abcdef;

	const struct {
		uid_t owner;
		int seals;
		size_t bytes;
		bool is_taken;
	} pages[] = {
	    {0, F_SEAL_WRITE | SIZE | F_SEAL_SEAL, sizeof(struct region_pool_page), true},
	    {0, SIZE | F_SEAL_SEAL, sizeof(struct region_pool_page), false},
	    {0, F_SEAL_WRITE | SIZE | F_SEAL_SEAL, sizeof(struct region_pool_page) + 1, false},
	    {0, F_SEAL_WRITE | SIZE | F_SEAL_SEAL, 1 << 20, false},
	    {OTHER_USER, F_SEAL_WRITE | SIZE | F_SEAL_SEAL, sizeof(struct region_pool_page), false},
	    {NO_NUMBER, F_SEAL_WRITE | SIZE | F_SEAL_SEAL, sizeof(struct region_pool_page), false},
	};
	if (geteuid() != 0)
		skip(); /* nobody else can make files of other users */
	for (size_t i = 0; i < sizeof(pages) / sizeof(pages[0]); i++) {
		const struct region_pool_page page = {.magic = REGION_POOL_MAGIC,
		    .abi = REGION_ABI,
		    .cookie = cookie,
		    .tickets_path = "/proc/1/fd/99999",
		    .ledger_path = "/proc/1/fd/99999"};
		char value[128];
		bool found = false;

		assert_int_equal(0, seteuid(pages[i].owner));
		const int fd = memfd_create("heaptap-pool", MFD_CLOEXEC | MFD_ALLOW_SEALING);
		assert_int_equal(0, seteuid(0));
		assert_int_equal(sizeof(page), write(fd, &page, sizeof(page)));
		assert_int_equal(0, ftruncate(fd, (off_t)pages[i].bytes));
		assert_int_equal(0, fcntl(fd, F_ADD_SEALS, pages[i].seals));
		snprintf(value, sizeof(value), "%s:0123456789abcdef", path_of(fd));
		set_session("libheaptap.so", value);
		assert_false(gets_region(true, &found));
		if (found != pages[i].is_taken)
			fail_msg("page %zu", i);
		close(fd);
	}
	set_session(NULL, NULL);
}

/* A file with the header of a region. modules: 0 where it should be. */
static void write_region(int fd, uint64_t modules)
{
	struct region_header header = {
	    .magic = REGION_MAGIC, .abi = REGION_ABI, .segments = 1, .start_segments = 1, .large_buffers = 1};

	region_lay_out(&header.offsets, header.segments, header.large_buffers);
	assert_int_equal(0, ftruncate(fd, (off_t)header.offsets.end));
	header.offsets.modules = modules ? modules : header.offsets.modules;
	assert_int_equal(sizeof(header), pwrite(fd, &header, sizeof(header), 0));
}

/* With the buffers beside it, as the holder has them. */
static bool is_mapped(int fd, int buffers_fd)
{
	const int far_fd = fcntl(fd, F_DUPFD_CLOEXEC, 64);

	close(fd);
	if (buffers_fd >= 0 && buffers_fd != ATTACH_BUFFERS_FD) {
		assert_int_equal(ATTACH_BUFFERS_FD, dup2(buffers_fd, ATTACH_BUFFERS_FD));
		close(buffers_fd);
	}
	struct region_header *header = session_region_at(path_of(far_fd), NULL, 0);
	if (header)
		munmap(header, header->offsets.end);
	close(far_fd);
	close(ATTACH_BUFFERS_FD);
	return header != NULL;
}

static int make_buffers(int seals, int bytes_more)
{
	const int fd = memfd_create("heaptap-buffers", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	struct region_offsets offsets;

	region_lay_out(&offsets, 1, 1);
	assert_int_equal(0, ftruncate(fd, (off_t)region_buffers_bytes(&offsets) + bytes_more));
	assert_int_equal(0, fcntl(fd, F_ADD_SEALS, seals));
	return fd;
}

static int make_region_file(void)
{
	const int fd = memfd_create("heaptap", MFD_CLOEXEC | MFD_ALLOW_SEALING);

	write_region(fd, 0);
	assert_int_equal(0, fcntl(fd, F_ADD_SEALS, SIZE));
	return fd;
}

/* Without them there is no region: a store into what is cut off would end the program. */
static void the_buffers_of_a_region_at_a_path(void **unused)
{
	assert_true(is_mapped(make_region_file(), make_buffers(SIZE, 0)));
	assert_false(is_mapped(make_region_file(), -1));
	assert_false(is_mapped(make_region_file(), make_buffers(F_SEAL_GROW, 0)));
	assert_false(is_mapped(make_region_file(), make_buffers(SIZE, -REGION_PAGE_BYTES)));
	assert_false(is_mapped(make_region_file(), make_buffers(SIZE, REGION_PAGE_BYTES)));
	assert_false(is_mapped(make_region_file(), open("/dev/zero", O_RDWR | O_CLOEXEC)));
	if (geteuid() != 0)
		return;
	assert_int_equal(0, seteuid(OTHER_USER));
	const int others = make_buffers(SIZE, 0);
	assert_int_equal(0, seteuid(0));
	assert_false(is_mapped(make_region_file(), others));
}

static void a_region_at_a_path(void **state)
{
	const struct {
		uid_t owner;
		int seals;
		uint64_t modules;
		bool is_taken;
	} files[] = {
	    {0, SIZE, 0, true},
	    {0, SIZE | F_SEAL_SEAL, 0, true},
	    {0, 0, 0, false},
	    {0, F_SEAL_SHRINK, 0, false},
	    {0, F_SEAL_GROW, 0, false},
	    {0, SIZE, UINT64_C(1) << 62, false},
	    {0, SIZE, REGION_PAGE_BYTES, false},
	    {NO_NUMBER, SIZE, 0, true}, /* root outside of a user namespace has none in it */
	    {OTHER_USER, SIZE, 0, false},
	};
	for (size_t i = 0; i < sizeof(files) / sizeof(files[0]); i++) {
		const bool may_be = geteuid() == 0; /* else all files are our own */

		if (may_be)
			assert_int_equal(0, seteuid(files[i].owner));
		const int fd = memfd_create("heaptap", MFD_CLOEXEC | MFD_ALLOW_SEALING);
		if (may_be)
			assert_int_equal(0, seteuid(0));
		write_region(fd, files[i].modules);
		assert_int_equal(0, fcntl(fd, F_ADD_SEALS, files[i].seals));
		if (is_mapped(fd, make_buffers(SIZE, 0)) !=
		    (files[i].is_taken || (!may_be && files[i].owner == OTHER_USER)))
			fail_msg("file %zu", i);
	}
	/* A file on a disk has no seals, which is another answer than all of them. */
	const int plain = open(workshop_path(*state, "region"), O_RDWR | O_CREAT, 0600);
	write_region(plain, 0);
	assert_false(is_mapped(plain, make_buffers(SIZE, 0)));
	assert_null(session_region_at(workshop_path(*state, "region"), NULL, 0));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(from_a_pool),
	    cmocka_unit_test(only_beside_a_preload_that_names_us),
	    cmocka_unit_test(a_pool_page_is_its_owners_word),
	    cmocka_unit_test(a_region_at_a_path),
	    cmocka_unit_test(the_buffers_of_a_region_at_a_path),
	};

	return cmocka_run_group_tests(tests, workshop_open, workshop_close);
}
