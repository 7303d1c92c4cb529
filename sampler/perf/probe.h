/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Probes: the perf events that sit on the library's trigger, and the choice between them.
 *
 *   uprobe      one event per CPU for the whole system; needs CAP_SYS_ADMIN (with CAP_PERFMON alone Linux
 *               6.12 and 6.18 refuse it). No cost at context switches. Never with inherit=1: the kernel
 *               would re-read our pointer in the cloning task and fail its fork.
 *   breakpoint  one event per process and CPU, inherited by its threads and children; for anyone at
 *               perf_event_paranoid 2. Needs one of four debug registers; costs about 1 us per context
 *               switch.
 *   copy        no perf at all: the hook copies the stack itself.
 *
 * `auto` takes the first backend that the kernel opens: only a trial tells what a kernel allows. At small
 * periods, and while dumps wait in the rings, the probe is used only for stacks for which the hook has no
 * buffer (proto/region.h, copy_period_bytes and dumps_most). Measured at -p 1, the total CPU time is a
 * multiple of heaptrack's: 4 to 9 times with the uprobe alone, 1.3 to 3.5 times if buffers are used first,
 * both without a lost stack; 1 to 2 times with buffers alone, which lose half of the stacks or more. (A Xeon
 * guest with two CPUs, load 2 to 14.)
 */
#ifndef SAMPLER_PERF_PROBE_H
#define SAMPLER_PERF_PROBE_H

#include "sampler/perf/ring.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* ---- the trigger: the instruction in the preloaded library at which the probe is set. The library gives its
 * address in a note of systemtap's format (SHT_NOTE, owner "stapsdt", type 3, provider "heaptap"). */

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

/* ---- the probe */

/* How stacks are captured. */
enum backend {
	BACKEND_AUTO,
	BACKEND_UPROBE,
	BACKEND_BREAKPOINT,
	BACKEND_COPY,
	BACKEND_WALK, /* the hook walks the stack; a stack that it cannot walk is copied or dumped */
};

/* As users write them, in the order of the enum; NULL ends the list. */
extern const char *const backend_names[];
const char *backend_name(enum backend backend);

struct probe {
	enum backend backend; /* chosen; never BACKEND_AUTO */
	char reason[256];     /* a clause: why this one and not a better one */
	struct rings *rings;  /* NULL for BACKEND_COPY */
	uint32_t dump_bytes;
	uint64_t regs_mask;
	int *uprobe_fds;                  /* one per ring */
	struct trigger_page trigger_page; /* kept in memory while there is a uprobe */
	/* The file that has the uprobe, borrowed. In another root the same path may lead to another file.
	 * NULL if there is no uprobe, or the file has no path. */
	const char *library;
	uint64_t library_dev, library_ino;
};

/* Opens the best backend that `wanted` allows. Returns 0, or -errno with a line in probe->reason if an
 * explicit backend is not available. library: the path that targets preload; kept. */
int probe_open(struct probe *probe, enum backend wanted, const char *library, uint32_t stack_bytes,
    uint64_t period_bytes);
void probe_close(struct probe *probe);

/* For the breakpoint backend: opens events on every thread of a process, at its trigger's address. `fds` gets
 * rings_count entries per thread, `count` their number. The caller closes them with probe_detach. Returns 0
 * or -errno (nothing stays open). */
int probe_attach(const struct probe *probe, pid_t pid, uint64_t trigger_address, int **fds, size_t *count);
void probe_detach(int *fds, size_t count);

/*
 * ---- every thread of a process
 *
 * Puts something on every thread of a running process that new threads inherit from their creators, such as a
 * perf event. A thread whose creator was not reached yet does not inherit it. So the list of threads is read
 * in rounds, until a round finds no new thread.
 */
struct probe_rounds {
	pid_t pid;
	int rounds_max;
	bool one_is_quiet; /* a first round with one thread is enough: later threads inherit from it */
	/* Called for a thread that was not reached yet. Returns 0; -ESRCH if the thread has ended; or another
	 * -errno, which ends probe_rounds_run. */
	int (*thread)(void *context, pid_t tid);
	void *context;
};

/* Returns the number of threads reached, or -errno (-ESRCH if the process does not exist). The caller closes
 * what was opened, also after an error. */
ssize_t probe_rounds_run(const struct probe_rounds *rounds);

#endif
