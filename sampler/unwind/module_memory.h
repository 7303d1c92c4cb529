/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The file of a mapping if the file itself is gone: the parts that the process still has in memory.
 *
 * The loader maps nearly all that we need of a file: headers, build id, unwind tables and the table of the
 * symbols that others can link to. (Not the whole symbol table, nor debug information.) They are copied to
 * their places in a sparse file in memory, which then stands for the file. Code is not copied: reading code
 * would make it resident in the process.
 *
 * All of this is the process' own word, so no other process gets any of it.
 */
#ifndef SAMPLER_UNWIND_MODULE_MEMORY_H
#define SAMPLER_UNWIND_MODULE_MEMORY_H

#include "sampler/unwind/module_file.h"

#include <stddef.h>
#include <stdint.h>

enum { MODULE_MEMORY_BYTES_MAX = 32 << 20 }; /* that are copied */

/* A process' memory. `read` reads all bytes or fails; it returns 0 or -errno. */
struct module_memory {
	int (*read)(void *context, void *to, size_t bytes, uint64_t address);
	void *context;
};

/* The mapping of code at [start, ...), which begins at `pgoff` of the file; and the zeroed area into which
 * the file is put. At most bytes_max of its bytes are written. */
struct module_memory_copy {
	uint64_t start, pgoff;
	unsigned char *area;
	uint64_t area_bytes, bytes_max;
	uint64_t bytes, length; /* answer: copied; of the file */
};

/* Finds and copies the file. Returns 0; -ENOEXEC if there is no ELF file with code there; -EFBIG if it does
 * not fit; or -errno of a read. Pure but for the reads. */
int module_memory_gather(const struct module_memory *memory, struct module_memory_copy *copy);

/*
 * The same for request->start of the process, by a child (memory_reader.h), at most request->copy_bytes_max
 * bytes. If the file that is now at the path has the same build id as the memory, that file is opened
 * instead. Returns 0, and the caller closes `file`; -EPERM or -EACCES if we may not read the process; or the
 * errors above.
 */
int module_memory_open(const struct module_request *request, struct module_file *file);

#endif
