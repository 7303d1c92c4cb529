/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The trigger: the instruction in the preloaded library at which the probe is set. The library gives its
 * address in a note of systemtap's format (SHT_NOTE, owner "stapsdt", type 3, provider "heaptap").
 */
#ifndef SAMPLER_PERF_TRIGGER_H
#define SAMPLER_PERF_TRIGGER_H

#include <stddef.h>
#include <stdint.h>

/* Finds the trigger's offset in the file. Returns 0; -ENOENT if there is no such note, or its address is not
 * in the file; or -errno. */
int trigger_find(int library_fd, uint64_t *file_offset);

/* A part of a file that is kept in memory. */
struct trigger_page {
	void *start; /* NULL: nothing */
	size_t bytes;
};

/*
 * Keeps the page of the trigger in the page cache until trigger_release().
 *
 * When a process maps the library, the kernel inserts the uprobe and reads the instruction from the page
 * cache (uprobe_mmap, install_breakpoint, copy_insn). If the page is not in the cache, because memory was
 * short or the file was never read, the kernel reads it from the disk in the middle of that mmap, and the
 * target waits. One kernel warned about that (read_cache_page). Returns 0 or -errno. The trigger works
 * without, so a caller may go on.
 */
int trigger_hold(int library_fd, uint64_t file_offset, struct trigger_page *page);
void trigger_release(struct trigger_page *page);

#endif
