/* SPDX-License-Identifier: Apache-2.0 */
/* The heap's part of a sampler: probe, regions and processes. */
#ifndef SAMPLER_CORE_HEAP_CAPTURE_H
#define SAMPLER_CORE_HEAP_CAPTURE_H

#include "sampler/books/registry.h"
#include "sampler/core/heap_capture_options.h"
#include "sampler/core/poll_interval.h"
#include "sampler/write/heap_source.h"

struct heap_capture {
	const struct heap_capture_options *options;
	int verbosity;
	struct probe probe;
	struct intake intake;
	struct region_pool *pool; /* NULL: processes make their regions themselves */
	struct choice *choice;    /* NULL: all programs */
	struct registry registry;
	struct heap_source
	    source; /* source.period_bytes: the current one, which our own load may have raised */
	struct poll_interval pace;
};

/* Opens the best backend that the options allow. Returns 0, or -errno with the reason in probe.reason. */
int heap_capture_probe(
    struct heap_capture *capture, const struct heap_capture_options *options, int verbosity);

struct heap_capture_setup { /* borrowed */
	const struct launch *launch;
	struct modules *modules;
	struct memory_bound *memory;
	int epoll_fd;
	struct scheduler *scheduler;
	struct event_source *events; /* NULL: none */
	bool offered;                /* no region is made: processes offer theirs (the daemon) */
};

/* Call it after heap_capture_probe(). Returns 0 or -errno; call heap_capture_close() in both cases. */
int heap_capture_open(struct heap_capture *capture, const struct heap_capture_setup *setup);
void heap_capture_close(struct heap_capture *capture);

/* True if the readable descriptor is one of the heap's: the next heap_capture_look() finds what it is
 * about. */
bool heap_capture_event(struct heap_capture *capture, int fd);

/* Reads what processes have written into shared memory. ended: also looks for processes that have ended.
 * True if processes have requested snapshots. */
bool heap_capture_look(struct heap_capture *capture, bool ended);

#endif
