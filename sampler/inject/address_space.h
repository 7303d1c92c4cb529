/* SPDX-License-Identifier: Apache-2.0 */
/* All mappings of a process, as the kernel lists them, and access to its memory. All that is read there is
 * the target's word: it is used only for the target itself. */
#ifndef SAMPLER_INJECT_ADDRESS_SPACE_H
#define SAMPLER_INJECT_ADDRESS_SPACE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct mapping {
	uint64_t start, end, offset, ino;
	uint32_t prot; /* PROT_* */
	bool shared;
	char *path; /* "" if none */
};

struct address_space {
	pid_t pid;
	int memory_fd; /* /proc/PID/mem, for reading and writing */
	struct mapping *mappings;
	size_t count, capacity, path_bytes;
};

/* Returns 0 or -errno; -EACCES or -EPERM if the kernel does not let us attach; -E2BIG if the paths of the
 * mappings take more than 16 MiB. Call address_space_close in both cases. */
int address_space_open(struct address_space *space, pid_t pid);
void address_space_close(struct address_space *space);

/* Reads the mappings again. Returns 0 or -errno. */
int address_space_refresh(struct address_space *space);

/* Keeps every other heaptap from changing the process until address_space_close. Waits at most limit_ms, or
 * until cancel_fd is readable (-1: none). Returns 0 or -EBUSY. */
int address_space_lock(const struct address_space *space, int limit_ms, int cancel_fd);

/* The mapping of an address, or NULL. */
const struct mapping *address_space_find(const struct address_space *space, uint64_t address);

/* Is `name` the file name of the mapping's path, or of a file in memory? With `prefix`, '-' or '.' and more
 * may follow `name` in the path. address_space_file returns the first such mapping, or NULL. */
bool address_space_is_named(const struct mapping *mapping, const char *name, bool prefix);
const struct mapping *address_space_file(const struct address_space *space, const char *name, bool prefix);

/* Is this a file in memory (memfd)? The first mapping of such a file with that name, or NULL. */
bool address_space_is_memory(const struct mapping *mapping);
const struct mapping *address_space_memory(const struct address_space *space, const char *name);

/* The region by which the process is or was profiled. NULL if it has none, or only one that it offers and
 * nobody has turned on. */
const struct mapping *address_space_region(const struct address_space *space);

/* Read or write all bytes. Return 0 or -EFAULT. */
int address_space_read(const struct address_space *space, uint64_t address, void *to, size_t bytes);
int address_space_write(const struct address_space *space, uint64_t address, const void *from, size_t bytes);

/* Copies as many bytes as can be read, at most `bytes`. Returns their number. */
size_t address_space_read_some(const struct address_space *space, uint64_t address, void *to, size_t bytes);

/* The first place of these bytes in an executable mapping of the same file, or 0 if there is none. */
uint64_t address_space_search(
    const struct address_space *space, const struct mapping *file, const unsigned char *bytes, size_t count);

/* A value of the auxiliary vector, or 0 if there is none. */
uint64_t address_space_auxiliary(const struct address_space *space, uint64_t type);

#endif
