/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which malloc does a file of a running process call?
 *
 * A file calls into libraries through its global offset table, which the loader has filled in. The table's
 * entry is the answer, whatever the reason is: a plug-in opened with RTLD_DEEPBIND, a library linked with
 * -Bsymbolic, an allocator that was loaded first.
 */
#ifndef SAMPLER_INJECT_MALLOC_BINDING_H
#define SAMPLER_INJECT_MALLOC_BINDING_H

#include <stdint.h>

/*
 * Reads the table's entry for a symbol. file: the path of the ELF file; base: its lowest mapped address;
 * memory_fd: /proc/PID/mem. Returns 0, -ENOENT if the file does not import the symbol, or -errno.
 */
int malloc_binding_read(const char *file, uint64_t base, int memory_fd, const char *symbol, uint64_t *target);

#endif
