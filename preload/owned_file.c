/* SPDX-License-Identifier: Apache-2.0 */
#include "preload/owned_file.h"

#include "preload/lookup.h"
#include "preload/memory.h"
#include "preload/raw_file.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <sys/stat.h>

enum {
	NO_NUMBER = 65534, /* unless /proc/sys/kernel/overflowuid was changed */
	PATH_BYTES = 64,
	DIGITS_MOST = 10,
};

/* Not geteuid(), which a filter might punish. */
static uid_t own_user(void)
{
	return (uid_t)getauxval(AT_EUID);
}

bool owned_file_is_by(uid_t uid)
{
	return uid == 0 || (uid == own_user() && uid != NO_NUMBER);
}

static size_t count_digits(const char *text)
{
	const size_t count = strspn(text, "0123456789");

	return count <= DIGITS_MOST ? count : 0;
}

/* The N of "/proc/PID/fd/N"; NULL: another path. */
static const char *name_in(const char *path)
{
	static const char before[] = "/proc/", between[] = "/fd/";

	if (strncmp(path, before, sizeof(before) - 1) != 0)
		return NULL;
	path += sizeof(before) - 1;
	size_t count = count_digits(path);
	if (!count || strncmp(path + count, between, sizeof(between) - 1) != 0)
		return NULL;
	path += count + sizeof(between) - 1;
	count = count_digits(path);
	return count && !path[count] ? path : NULL;
}

int owned_file_folder(const char *path)
{
	char folder[PATH_BYTES];
	const char *name = name_in(path);

	if (!name)
		return -1;
	memcpy(folder, path, (size_t)(name - path));
	folder[name - path] = '\0';
	return raw_file_open(folder, O_PATH | O_DIRECTORY);
}

/*
 * By the libc's own function: its loader has just made the same system call, which is fstat or newfstatat
 * from one version to the next. A program, and a library that it has loaded, may have an fstat of its own.
 * glibc before 2.33 has it under the other name.
 */
static bool find_facts(int fd, struct stat *facts)
{
	enum { KERNELS_VERSION = 0 };
	static int (*call)(int, struct stat *), (*old)(int, int, struct stat *);

	if (!call && !old) {
		call = (int (*)(int, struct stat *))(uintptr_t)lookup_in_libc("fstat");
		old = (int (*)(int, int, struct stat *))(uintptr_t)lookup_in_libc("__fxstat");
	}
	return call ? call(fd, facts) == 0 : old && old(KERNELS_VERSION, fd, facts) == 0;
}

static bool is_unnumbered(const struct stat *facts, enum owned_file_others others)
{
	return others == OWNED_FILE_UNNUMBERED && facts->st_uid == NO_NUMBER;
}

/* The path is short enough: a descriptor has ten digits at most. */
static int open_again(int fd, int flags)
{
	char path[PATH_BYTES] = "/proc/self/fd/", digits[DIGITS_MOST + 1];
	size_t count = 0, length = strlen(path);

	for (; fd > 0 || !count; fd /= 10)
		digits[count++] = (char)('0' + fd % 10);
	while (count > 0)
		path[length++] = digits[--count];
	return raw_file_open(path, flags | O_NONBLOCK | O_NOCTTY);
}

int owned_file_open(
    int folder, const char *path, mode_t type, int flags, enum owned_file_others others, uint64_t *bytes)
{
	struct stat facts;
	const char *name = name_in(path);
	const int place = name ? raw_file_open_in(folder, name, O_PATH) : -1;
	int fd = -1;

	if (place < 0)
		return -1;
	if (find_facts(place, &facts) && (facts.st_mode & S_IFMT) == type) {
		*bytes = (uint64_t)facts.st_size;
		if (facts.st_uid == 0 || is_unnumbered(&facts, others))
			fd = open_again(place, flags);
		else if (facts.st_uid == own_user())
			fd = open_again(place, flags | O_NOATIME);
	}
	raw_file_close(place);
	return fd;
}

bool owned_file_check(int fd, enum owned_file_others others, uint64_t *bytes)
{
	struct stat facts;

	if (!find_facts(fd, &facts) || !S_ISREG(facts.st_mode) ||
	    !(owned_file_is_by(facts.st_uid) || is_unnumbered(&facts, others)))
		return false;
	*bytes = (uint64_t)facts.st_size;
	return true;
}

/* fcntl is no system call of the loader's, mmap is. */
bool owned_file_is_sealed(int fd)
{
	void *page = memory_map(1, MAP_SHARED, fd);

	if (!page)
		return errno == EPERM;
	memory_unmap(page, 1);
	return false;
}
