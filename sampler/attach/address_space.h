/* SPDX-License-Identifier: Apache-2.0 */
/* Every mapping of a process, and its memory: what the kernel says of it, and what an object in it exports.
 * All that is read there is the target's word; it is used for nothing but the target itself. */
#ifndef SAMPLER_ATTACH_ADDRESS_SPACE_H
#define SAMPLER_ATTACH_ADDRESS_SPACE_H

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
	size_t count, capacity;
};

/* Returns 0 or -errno: -EACCES or -EPERM if the kernel does not let us attach. address_space_close in both
 * cases. */
int address_space_open(struct address_space *space, pid_t pid);
void address_space_close(struct address_space *space);

/* Reads the mappings again. Returns 0 or -errno. */
int address_space_refresh(struct address_space *space);

/* Waits until no other heaptap changes the process, or cancel_fd is readable (-1: none); it holds until
 * address_space_close. Returns 0 or -EBUSY. */
int address_space_lock(const struct address_space *space, int limit_ms, int cancel_fd);

/* The mapping of an address, or NULL. */
const struct mapping *address_space_find(const struct address_space *space, uint64_t address);

/* Does the mapping's path end with `name`, after a slash or as that of a file in memory? `name` may go on
 * with '-' or '.' in the path if `prefix`. And the first such mapping, or NULL. */
bool address_space_is_named(const struct mapping *mapping, const char *name, bool prefix);
const struct mapping *address_space_file(const struct address_space *space, const char *name, bool prefix);

/* The first mapping of a file in memory (memfd) of that name, or NULL. */
const struct mapping *address_space_memory(const struct address_space *space, const char *name);

/* The region by which it is profiled, or was; NULL: none, or one that it offers and nobody has turned on. */
const struct mapping *address_space_region(const struct address_space *space);

/* All bytes, or -EFAULT. */
int address_space_read(const struct address_space *space, uint64_t address, void *to, size_t bytes);
int address_space_write(const struct address_space *space, uint64_t address, const void *from, size_t bytes);

/* How many bytes can be read from there, at most `bytes`: copies these. */
size_t address_space_read_some(const struct address_space *space, uint64_t address, void *to, size_t bytes);

/* The first place of these bytes in an executable mapping of the same file; 0: none. */
uint64_t address_space_search(
    const struct address_space *space, const struct mapping *file, const unsigned char *bytes, size_t count);

/* A value of the auxiliary vector; 0: none. */
uint64_t address_space_auxiliary(const struct address_space *space, uint64_t type);

#endif
