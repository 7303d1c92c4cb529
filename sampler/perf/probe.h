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
#include "sampler/perf/trigger.h"

#include <sys/types.h>

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

#endif
