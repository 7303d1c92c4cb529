/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The file of a mapping when the file is gone: what the process still has of it in memory.
 *
 * The loader maps nearly all that we need of a file: headers, build id, unwind tables and the table of the
 * symbols that others can link to. (Not the whole symbol table, nor debug information.) They are copied to
 * their places in a sparse file in memory, which is used as the file itself would be. Code is not copied: to
 * read it would make it resident in the process.
 *
 * All of it is the process' own word, so nothing of it is for any other process.
 */
#ifndef SAMPLER_UNWIND_MODULE_MEMORY_H
#define SAMPLER_UNWIND_MODULE_MEMORY_H

#include "sampler/unwind/module_file.h"

#include <stddef.h>
#include <stdint.h>

enum { MODULE_MEMORY_BYTES_MAX = 32 << 20 }; /* that are copied */

/* Somebody's memory. read: 0 or -errno, all or nothing. */
struct module_memory {
	int (*read)(void *context, void *to, size_t bytes, uint64_t address);
	void *context;
};

/* The mapping of code at [start, ...), which begins at `pgoff` of the file; and the zeroes into which the
 * file is put, of which at most bytes_max become others. */
struct module_memory_copy {
	uint64_t start, pgoff;
	unsigned char *area;
	uint64_t area_bytes, bytes_max;
	uint64_t bytes, length; /* answer: copied; of the file */
};

/* Finds and copies the file. 0; -ENOEXEC: there is no ELF file with code there; -EFBIG: it does not fit;
 * -errno of a read. Pure but for the reads. */
int module_memory_gather(const struct module_memory *memory, struct module_memory_copy *copy);

/*
 * The same for request->start of the process, by a child (memory_reader.h), at most request->copy_bytes_max
 * bytes. If the memory has the build id of the file that is at the path by now, that one is opened instead.
 * 0: the caller closes `file`. -EPERM, -EACCES: we may not read that process; others as above.
 */
int module_memory_open(const struct module_request *request, struct module_file *file);

#endif
