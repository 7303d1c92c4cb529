/* SPDX-License-Identifier: Apache-2.0 */
/* Whose a descriptor is that a path below /proc names, and what is opened of it. */
#include "preload/owned_file.h"
#include "preload/lookup.h"

#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/inotify.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "tests/unit/workshop.h"

enum { OTHER_USER = 1000, NO_NUMBER = 65534 };

static const char *path_of(int fd)
{
	static char path[64];

	snprintf(path, sizeof(path), "/proc/%d/fd/%d", (int)getpid(), fd);
	return path;
}

static int memory(size_t bytes, int seals)
{
	const int fd = memfd_create("heaptap-test", MFD_CLOEXEC | MFD_ALLOW_SEALING);

	assert_true(fd >= 0);
	assert_int_equal(0, ftruncate(fd, (off_t)bytes));
	assert_int_equal(0, fcntl(fd, F_ADD_SEALS, seals));
	return fd;
}

/* Whether it is opened; the size is the file's. */
static bool opens(int fd, mode_t type, enum owned_file_others others)
{
	uint64_t bytes = 0;
	struct stat status;
	const char *path = path_of(fd);
	const int folder = owned_file_folder(path);

	assert_true(folder >= 0);
	const int opened = owned_file_open(folder, path, type, O_RDONLY, others, &bytes);
	close(folder);
	if (opened < 0)
		return false;
	assert_int_equal(0, fstat(fd, &status));
	assert_int_equal(status.st_size, bytes);
	assert_true(fcntl(opened, F_GETFD) & FD_CLOEXEC);
	close(opened);
	return true;
}

static void only_descriptors_of_a_process(void **unused)
{
	static const char *const wrong[] = {"", "/", "/dev/null", "/proc", "/proc/", "/proc/1", "/proc/1/fd",
	    "/proc/1/fd/", "/proc/1/fd/3/", "/proc/1/fd/3x", "/proc/1/fd/x3", "/proc/1/fd/3 ", "/proc//fd/3",
	    "/proc/self/fd/3", "/proc/1/fd/../fd/3", "/proc/1/cwd/3", "/proc/1/task/1/fd/3", "/proc/1//fd/3",
	    "//proc/1/fd/3", "proc/1/fd/3", " /proc/1/fd/3", "/proc/-1/fd/3", "/proc/+1/fd/3",
	    "/proc/1/fd/-3", "/proc/12345678901/fd/3", "/proc/1/fd/12345678901", "/proc/1/fd/3:"};

	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		uint64_t bytes;

		if (owned_file_folder(wrong[i]) >= 0)
			fail_msg("'%s' names a folder", wrong[i]);
		const int folder = owned_file_folder(path_of(0));
		if (owned_file_open(folder, wrong[i], S_IFREG, O_RDONLY, OWNED_FILE_NO_OTHERS, &bytes) >= 0)
			fail_msg("'%s' is opened", wrong[i]);
		close(folder);
	}
	const int folder = owned_file_folder(path_of(0));
	struct stat folder_status, status;
	assert_int_equal(0, fstat(folder, &folder_status));
	assert_int_equal(0, stat("/proc/self/fd", &status));
	assert_int_equal(status.st_ino, folder_status.st_ino);
	close(folder);
}

/* A folder stays that of one process: of a path, only the descriptor's number counts there. */
static void of_the_process_of_the_folder(void **unused)
{
	const int fd = memory(100, 0), folder = owned_file_folder(path_of(fd));
	char other[64];
	uint64_t bytes = 0;

	snprintf(other, sizeof(other), "/proc/1/fd/%d", fd);
	const int opened = owned_file_open(folder, other, S_IFREG, O_RDONLY, OWNED_FILE_NO_OTHERS, &bytes);
	assert_true(opened >= 0);
	assert_int_equal(100, bytes);
	close(opened);
	close(folder);
	close(fd);
}

static void of_the_type_that_is_asked_for(void **unused)
{
	int pipe_fds[2];
	const int file = memory(100, 0), device = open("/dev/null", O_PATH), folder = open("/", O_PATH);

	assert_int_equal(0, pipe(pipe_fds));
	assert_true(opens(file, S_IFREG, OWNED_FILE_NO_OTHERS));
	assert_true(opens(pipe_fds[0], S_IFIFO, OWNED_FILE_NO_OTHERS));
	assert_false(opens(file, S_IFIFO, OWNED_FILE_NO_OTHERS));
	assert_false(opens(pipe_fds[0], S_IFREG, OWNED_FILE_NO_OTHERS));
	assert_false(opens(device, S_IFREG, OWNED_FILE_NO_OTHERS));
	assert_false(opens(folder, S_IFREG, OWNED_FILE_NO_OTHERS));
	close(file);
	close(device);
	close(folder);
	close(pipe_fds[0]);
	close(pipe_fds[1]);
}

/* Of a named pipe, and of a file of another user, which stand for a device here. */
static void what_is_refused_is_not_opened(void **state)
{
	const struct workshop *shop = *state;
	const char *fifo = workshop_path(shop, "fifo"), *file = workshop_path(shop, "file");
	char event[sizeof(struct inotify_event) + 256];
	const int watch = inotify_init1(IN_NONBLOCK | IN_CLOEXEC);

	assert_int_equal(0, mkfifo(fifo, 0600));
	assert_true(workshop_write(shop, "file", "text"));
	const int fifo_place = open(fifo, O_PATH), file_place = open(file, O_PATH);
	assert_true(inotify_add_watch(watch, fifo, IN_OPEN) >= 0);
	assert_false(opens(fifo_place, S_IFREG, OWNED_FILE_NO_OTHERS));
	if (geteuid() == 0) {
		assert_int_equal(0, chown(file, OTHER_USER, OTHER_USER));
		assert_true(inotify_add_watch(watch, file, IN_OPEN) >= 0);
		assert_false(opens(file_place, S_IFREG, OWNED_FILE_NO_OTHERS));
	}
	assert_int_equal(-1, read(watch, event, sizeof(event)));
	/* what would have been heard */
	assert_true(opens(fifo_place, S_IFIFO, OWNED_FILE_NO_OTHERS));
	assert_true(read(watch, event, sizeof(event)) > 0);
	close(fifo_place);
	close(file_place);
	close(watch);
}

static void of_root_or_of_ourselves(void **unused)
{
	uint64_t bytes = 0;
	const int own = memory(100, 0);

	assert_true(owned_file_is_by(0));
	const bool is_numbered = geteuid() != NO_NUMBER;
	assert_int_equal(is_numbered, owned_file_is_by(geteuid()));
	assert_false(owned_file_is_by(geteuid() + 1));
	assert_false(owned_file_is_by(NO_NUMBER));
	assert_true(opens(own, S_IFREG, OWNED_FILE_NO_OTHERS)); /* the kernel knows whose it is */
	assert_int_equal(is_numbered, owned_file_check(own, OWNED_FILE_NO_OTHERS, &bytes));
	assert_true(owned_file_check(own, OWNED_FILE_UNNUMBERED, &bytes));
	assert_int_equal(100, bytes);
	close(own);
	if (geteuid() != 0)
		skip(); /* nobody else can make files of other users */
	const struct {
		uid_t uid;
		bool is_taken, is_taken_unnumbered;
	} owners[] = {{0, true, true}, {OTHER_USER, false, false}, {NO_NUMBER, false, true}};
	for (size_t i = 0; i < sizeof(owners) / sizeof(owners[0]); i++) {
		assert_int_equal(0, seteuid(owners[i].uid));
		const int fd = memory(100, F_SEAL_SHRINK | F_SEAL_GROW);
		assert_int_equal(0, seteuid(0));
		assert_int_equal(owners[i].is_taken, opens(fd, S_IFREG, OWNED_FILE_NO_OTHERS));
		assert_int_equal(owners[i].is_taken, owned_file_check(fd, OWNED_FILE_NO_OTHERS, &bytes));
		assert_int_equal(owners[i].is_taken_unnumbered, opens(fd, S_IFREG, OWNED_FILE_UNNUMBERED));
		assert_int_equal(
		    owners[i].is_taken_unnumbered, owned_file_check(fd, OWNED_FILE_UNNUMBERED, &bytes));
		close(fd);
	}
}

static void sealed_against_writing_and_nothing_less(void **state)
{
	const struct {
		int seals;
		bool is_sealed;
	} files[] = {{0, false}, {F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL, false}, {F_SEAL_WRITE, true},
	    {F_SEAL_WRITE | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL, true}};
	for (size_t i = 0; i < sizeof(files) / sizeof(files[0]); i++) {
		const int fd = memory(152, files[i].seals);

		assert_int_equal(files[i].is_sealed, owned_file_is_sealed(fd));
		close(fd);
	}
	assert_true(workshop_write(*state, "plain", "a file on a disk"));
	const int plain = open(workshop_path(*state, "plain"), O_RDWR);
	assert_false(owned_file_is_sealed(plain));
	close(plain);
	/* One that may not be mapped for writing because it is open for reading only is not sealed. */
	const int reading = open(workshop_path(*state, "plain"), O_RDONLY);
	assert_false(owned_file_is_sealed(reading));
	close(reading);
	assert_false(owned_file_is_sealed(-1));
}

/* The program has an fstat of its own here. */
int fstat(int fd, struct stat *status)
{
	static int (*real)(int, struct stat *);

	if (!real)
		real = (int (*)(int, struct stat *))(uintptr_t)lookup_in_libc("fstat");
	const int result = real(fd, status);
	status->st_uid = 0;
	return result;
}

static void the_libc_is_asked_and_not_the_program(void **unused)
{
	uint64_t bytes;

	assert_non_null(lookup_in_libc("fstat"));
	assert_ptr_not_equal(fstat, lookup_in_libc("fstat"));
	assert_null(lookup_in_libc("owned_file_check"));
	assert_null(lookup_in_libc("no such function"));
	const int fd = memory(100, 0);
	if (geteuid() == 0)
		assert_int_equal(0, fchown(fd, OTHER_USER, OTHER_USER));
	assert_int_equal(geteuid() != 0, owned_file_check(fd, OWNED_FILE_UNNUMBERED, &bytes));
	close(fd);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(only_descriptors_of_a_process),
	    cmocka_unit_test(of_the_process_of_the_folder),
	    cmocka_unit_test(of_the_type_that_is_asked_for),
	    cmocka_unit_test(what_is_refused_is_not_opened),
	    cmocka_unit_test(of_root_or_of_ourselves),
	    cmocka_unit_test(sealed_against_writing_and_nothing_less),
	    cmocka_unit_test(the_libc_is_asked_and_not_the_program),
	};

	return cmocka_run_group_tests(tests, workshop_open, workshop_close);
}
