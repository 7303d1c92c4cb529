/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The trigger: the instruction in the preloaded library on which a perf event sits. The library names its
 * address in a note as systemtap's probes have it (SHT_NOTE, owner "stapsdt", type 3, provider "heaptap").
 */
#ifndef SAMPLER_PERF_TRIGGER_H
#define SAMPLER_PERF_TRIGGER_H

#include <stddef.h>
#include <stdint.h>

/* Where it is in the file; reads that and nothing else. 0, -ENOENT: no such note, or of an address that the file does not hold; -errno. */
int trigger_find(int library_fd, uint64_t *file_offset);

/* The part of a file that is held in memory. */
struct trigger_page {
	void *start; /* NULL: nothing */
	size_t bytes;
};

/*
 * Keeps the page of the trigger in the page cache until trigger_release().
 *
 * A uprobe is put into each process that maps the library when it does so, and the kernel then reads the
 * instruction from the page cache (uprobe_mmap, install_breakpoint, copy_insn). If the page is not there,
 * since memory was short or the file was never read, it has to be read from the disk in the middle of that
 * mmap: a kernel warned of that (read_cache_page), and the target waits for it. Returns 0 or -errno; the
 * trigger works without, so a caller may go on.
 */
int trigger_hold(int library_fd, uint64_t file_offset, struct trigger_page *page);
void trigger_release(struct trigger_page *page);

#endif
