/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which malloc does a file of a running process call?
 *
 * A program calls into a library through its global offset table, which the loader has filled in. The table's
 * entry is the answer, whatever the reason: a plug-in opened with RTLD_DEEPBIND, a library linked with
 * -Bsymbolic, an allocator that was loaded first.
 */
#ifndef SAMPLER_LOADER_MALLOC_BINDING_H
#define SAMPLER_LOADER_MALLOC_BINDING_H

#include <stdint.h>

/*
 * file: path of an ELF file; base: the lowest address that it is mapped at; memory_fd: /proc/PID/mem. Reads
 * the file's entry for a symbol. Returns 0, -ENOENT (the file does not import it) or -errno.
 */
int malloc_binding_read(const char *file, uint64_t base, int memory_fd, const char *symbol, uint64_t *target);

#endif
