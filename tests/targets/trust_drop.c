/* SPDX-License-Identifier: Apache-2.0 */
/* build: -fno-builtin */
/*
 * trust_drop dropped   root's program has a secret on its stack at each allocation, and a forked child that
 *                      becomes nobody by the C library. The child is hostile: it looks for the secret in
 *                      every way that the kernel may have for it, while 20,000 stacks are copied
 * trust_drop kept      the child remains root, and sees it: so the secret can be seen at all
 * trust_drop locked    dropped, after the child has locked its memory to come, for which the limit is low
 * trust_drop quietly   dropped, by a child of whose fork no hook is told (_Fork)
 * trust_drop again     dropped, executed anew
 *
 * Prints each way and how often it led to the secret, or to a door that should be shut.
 */
#define _GNU_SOURCE
#include "proto/region.h"
#include "tests/targets/trust_secret.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

enum {
	NOBODY = 65534,
	SPAN_BYTES = 24 << 20, /* of each mapping: the buffers of the smallest class come first */
	PIECE_BYTES = 1 << 20,
	STACKS = 20000,
	MAPPINGS = 64,
	ROUNDS = 6000,
};

static const char secret[] = TRUST_SECRET_BEGIN TRUST_SECRET_END;

extern pid_t _Fork(void) __attribute__((weak)); /* glibc 2.34, musl 1.2.2 */

struct mapping {
	unsigned char *start;
	unsigned long bytes;
};

/* Not on the stack, which is copied too. */
static struct {
	struct mapping shared[MAPPINGS];
	int count;
	char maps[1 << 17];
	unsigned char piece[PIECE_BYTES];
	int mapped, mremap, remap, descriptors, map_files, parent, sampler;
} found;

/* Reads as a debugger does, so that nothing behind the end of a file ends us. */
static int sees(unsigned char *start, unsigned long bytes)
{
	for (unsigned long at = 0; at < bytes; at += PIECE_BYTES - sizeof(secret)) {
		const unsigned long rest = bytes - at;
		struct iovec to = {found.piece, rest < PIECE_BYTES ? rest : PIECE_BYTES};
		struct iovec from = {start + at, to.iov_len};
		const ssize_t got = process_vm_readv(getpid(), &to, 1, &from, 1, 0);

		if (got <= 0)
			break;
		if (memmem(found.piece, (size_t)got, secret, sizeof(secret) - 1))
			return 1;
	}
	return 0;
}

static void find_shared(void)
{
	size_t length = 0;
	ssize_t got;
	const int fd = open("/proc/self/maps", O_RDONLY | O_CLOEXEC);

	while (fd >= 0 && (got = read(fd, found.maps + length, sizeof(found.maps) - 1 - length)) > 0)
		length += (size_t)got;
	if (fd >= 0)
		close(fd);
	found.maps[length] = '\0';
	found.count = 0;
	for (char *line = strtok(found.maps, "\n"); line && found.count < MAPPINGS;
	     line = strtok(NULL, "\n")) {
		char *end;
		const unsigned long start = strtoul(line, &end, 16), stop = strtoul(end + 1, &end, 16);

		if (end[4] == 's')
			found.shared[found.count++] = (struct mapping){(unsigned char *)start, stop - start};
	}
}

static struct region_header *find_region(void)
{
	find_shared();
	for (int i = 0; i < found.count; i++) {
		struct region_header *header = (void *)found.shared[i].start;

		if (header->magic == REGION_MAGIC)
			return header;
	}
	return NULL;
}

/* From a mapping to the rest of its file. */
static void map_again(const struct mapping *mapping)
{
	unsigned char *again =
	    (void *)syscall(SYS_mremap, mapping->start, 0ul, (unsigned long)SPAN_BYTES, MREMAP_MAYMOVE, 0ul);

	if (again == MAP_FAILED)
		return;
	found.mremap += sees(again, SPAN_BYTES);
	if (syscall(SYS_remap_file_pages, again, (unsigned long)SPAN_BYTES, 0ul, 0ul, 0ul) == 0)
		found.remap += sees(again, SPAN_BYTES);
	munmap(again, SPAN_BYTES);
}

static void by_mappings(void)
{
	find_shared();
	for (int i = 0; i < found.count; i++) {
		const struct mapping *mapping = &found.shared[i];

		found.mapped +=
		    sees(mapping->start, mapping->bytes < SPAN_BYTES ? mapping->bytes : SPAN_BYTES);
		map_again(mapping);
	}
}

static void by_descriptors(void)
{
	char path[300], name[64];
	struct dirent *entry;
	DIR *folder = opendir("/proc/self/fd");

	while (folder && (entry = readdir(folder))) {
		snprintf(path, sizeof(path), "/proc/self/fd/%s", entry->d_name);
		const ssize_t length = readlink(path, name, sizeof(name) - 1);
		name[length > 0 ? length : 0] = '\0';
		found.descriptors += strncmp(name, "/memfd:", 7) == 0;
	}
	if (folder)
		closedir(folder);
	folder = opendir("/proc/self/map_files");
	while (folder && (entry = readdir(folder))) {
		snprintf(path, sizeof(path), "/proc/self/map_files/%s", entry->d_name);
		const int fd = entry->d_name[0] == '.' ? -1 : open(path, O_RDWR | O_CLOEXEC);
		void *start = fd < 0 ? MAP_FAILED : mmap(NULL, SPAN_BYTES, PROT_READ, MAP_SHARED, fd, 0);
		if (start != MAP_FAILED) {
			found.map_files += sees(start, SPAN_BYTES);
			munmap(start, SPAN_BYTES);
		}
		if (fd >= 0)
			close(fd);
	}
	if (folder)
		closedir(folder);
}

static int opens(pid_t pid, const char *file)
{
	char path[64];

	snprintf(path, sizeof(path), "/proc/%d/%s", (int)pid, file);
	const int fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd >= 0)
		close(fd);
	return fd >= 0;
}

static void by_others(struct region_header *header)
{
	const pid_t parent = getppid(), sampler = (pid_t)header->sampler_pid;
	struct iovec to = {found.piece, 64}, from = {header, 64};

	found.parent += opens(parent, "mem") + opens(parent, "fd") + opens(parent, "map_files") +
	    (process_vm_readv(parent, &to, 1, &from, 1, 0) > 0);
	found.sampler += opens(sampler, "mem") + opens(sampler, "fd") + opens(sampler, "map_files");
}

static int lock_memory_to_come(void)
{
	const struct rlimit limit = {64 << 10, 64 << 10};

	return setrlimit(RLIMIT_MEMLOCK, &limit) || mlockall(MCL_FUTURE);
}

static int child(struct region_header *header, const char *way, int ready)
{
	if (strcmp(way, "locked") == 0 && lock_memory_to_come() != 0)
		return 3;
	if (strcmp(way, "kept") != 0 &&
	    (setgid(NOBODY) != 0 || setuid(NOBODY) != 0 || prctl(PR_SET_DUMPABLE, 1) != 0))
		return 3;
	if (write(ready, "", 1) != 1)
		return 3;
	const uint64_t until = header->copied + STACKS;
	int round = 0;
	while (header->copied < until && ++round < ROUNDS) {
		by_mappings();
		usleep(10000);
	}
	by_descriptors();
	by_others(header);
	printf("mapped %d\nmremap %d\nremap_file_pages %d\ndescriptors %d\nmap_files %d\nparent %d\nsampler "
	       "%d\n",
	    found.mapped, found.mremap, found.remap, found.descriptors, found.map_files, found.parent,
	    found.sampler);
	printf("copied %d\n", header->copied >= until);
	return fflush(stdout) != 0;
}

__attribute__((noinline)) static void *take_secretly(int i)
{
	char own[sizeof(secret)];

	memcpy(own, secret, sizeof(own));
	void *block = malloc((size_t)(100 + i));
	__asm__ volatile("" : : "r"(own), "r"(block) : "memory");
	return block;
}

int main(int argc, char *argv[])
{
	struct region_header *header = NULL;
	int ready[2], status = 1;
	char byte;

	if (argc != 2 || pipe(ready) != 0)
		return 2;
	if (strcmp(argv[1], "again") == 0) {
		execl("/proc/self/exe", argv[0], "dropped", (char *)NULL);
		return 2;
	}
	puts("begun");
	fflush(stdout);
	for (int i = 0; i < ROUNDS && !(header = find_region()); i++)
		usleep(10000);
	if (!header)
		return 4;
	const pid_t pid = strcmp(argv[1], "quietly") == 0 && _Fork ? _Fork() : fork();
	if (pid == 0)
		_exit(child(header, argv[1], ready[1]));
	if (pid < 0 || read(ready[0], &byte, 1) != 1)
		return 5;
	for (int i = 0; waitpid(pid, &status, WNOHANG) == 0; i++)
		free(take_secretly(i % 5));
	return WIFEXITED(status) ? WEXITSTATUS(status) : 6;
}
