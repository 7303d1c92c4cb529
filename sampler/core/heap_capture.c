/* SPDX-License-Identifier: Apache-2.0 */
#include "sampler/core/heap_capture.h"

#include "pprof/text/amount.h"
#include "pprof/text/clock.h"
#include "pprof/text/log_line.h"
#include "pprof/text/text.h"
#include "sampler/books/drain.h"
#include "sampler/books/process_life.h"
#include "sampler/books/registry_look.h"
#include "sampler/books/walked.h"
#include "sampler/linux/regs.h"

#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <time.h>
#include <unistd.h>

enum {
	DRAIN_NS = 100 * 1000000, /* a look drains for so long; a client waits for three seconds */
	LIVE_MAX = 1 << 20,       /* live samples of a run and its children */
	/* At this period and below, with backend auto, the hook copies stacks first and traps only when the
	 * buffers are full. */
	COPY_PERIOD_BYTES = 16 << 10,
	/* With backend auto, the dumps of one program run fill this part of a ring at most; then the hook
	 * copies. */
	RING_SHARE = 32,
};

/* ---- opening */

/* May the hook walk stacks? A walked sample has no record of its own, so it has neither a thread nor a
 * size. */
static bool walks(const struct heap_capture_options *options)
{
	return (options->backend == BACKEND_AUTO || options->backend == BACKEND_WALK) &&
	    !(options->labels & (HEAP_LABEL_THREAD | HEAP_LABEL_SIZE));
}

/* Opens the copy backend in place of breakpoints. A breakpoint costs a microsecond at each context switch,
 * whether samples are taken or not: too much for the few stacks that are not walked. */
static int prefer_copies(struct probe *probe, const struct heap_capture_options *options)
{
	char reason[sizeof(probe->reason)];

	memcpy(reason, probe->reason, sizeof(reason));
	probe_close(probe);
	int error = probe_open(probe, BACKEND_COPY, "", options->stack_bytes, options->period_bytes);
	memcpy(probe->reason, reason, sizeof(probe->reason));
	return error;
}

int heap_capture_probe(struct heap_capture *h, const struct heap_capture_options *options, int verbosity)
{
	int ignored;

	h->options = options;
	h->verbosity = verbosity;
	if (options->backend == BACKEND_WALK && !walks(options)) {
		snprintf(h->probe.reason, sizeof(h->probe.reason), "%s",
		    "--labels thread and size need a record of each sample");
		return -EOPNOTSUPP;
	}
	/* The heap's rings take all memory that the limits leave, so the minimum for the events' rings is
	 * reserved first. */
	struct rings *kept = options->beside_events ? rings_open(EVENT_RING_BYTES_LEAST, &ignored) : NULL;
	int error = probe_open(
	    &h->probe, options->backend, options->library, options->stack_bytes, options->period_bytes);
	if (!error && h->probe.backend == BACKEND_BREAKPOINT && walks(options))
		error = prefer_copies(&h->probe, options);
	if (!error && walks(options))
		text_append(
		    h->probe.reason, sizeof(h->probe.reason), "; known ones are walked by the program");
	rings_close(kept);
	return error;
}

static int open_pool(struct heap_capture *h)
{
	const struct heap_capture_options *options = h->options;
	bool copies_first = options->backend == BACKEND_AUTO && region_clock() == CLOCK_MONOTONIC;
	const struct region_options region = {
	    .period_bytes = options->period_bytes,
	    .dump_bytes = h->probe.rings ? h->probe.dump_bytes : 0,
	    .clock_id = region_clock(),
	    .live_max = LIVE_MAX,
	    .copy_period_bytes = copies_first ? COPY_PERIOD_BYTES : 0,
	    .dumps_most = copies_first && h->probe.rings
	        ? rings_room(h->probe.rings, h->probe.dump_bytes) / RING_SHARE
	        : UINT64_MAX,
	    .mode = h->probe.backend == BACKEND_UPROBE ? REGION_MODE_TRIGGER : REGION_MODE_COPY,
	    .uprobe_dev = options->backend == BACKEND_AUTO ? h->probe.library_dev : 0,
	    .uprobe_ino = options->backend == BACKEND_AUTO ? h->probe.library_ino : 0,
	    .walk = walks(options) ? walked_interval(options->compare_walks) : 0,
	    .snapshot_signal = (uint32_t)options->signal,
	    .signal_everywhere = options->signal_everywhere,
	    .start_paused = options->paused,
	    .no_peak = options->no_peak,
	    .record_mmap = options->record_mmap,
	    .command_line = options->only || options->exclude,
	};

	h->pool = region_pool_new(&region);
	if (!h->pool)
		return -errno;
	if (region_pool_socket_error(h->pool) && h->verbosity >= 0)
		log_line(
		    "programs executed by other users, with fewer capabilities or in a user namespace are "
		    "not profiled: no socket for them: %s",
		    strerror(-region_pool_socket_error(h->pool)));
	else if (region_pool_socket_fd(h->pool, 1) < 0 && h->verbosity > 0)
		log_line("programs in a network namespace of their own are not profiled: no socket for them "
		         "could be made in /tmp");
	return 0;
}

static int watch(int epoll_fd, int fd, uint32_t events)
{
	struct epoll_event event = {.events = events, .data.fd = fd};

	return fd < 0 || epoll_ctl(epoll_fd, EPOLL_CTL_ADD, fd, &event) == 0 ? 0 : -errno;
}

/* Writes the line about the session in the comments of every profile. */
static void describe(void *context, uint64_t period_bytes, char *text, size_t bytes)
{
	const struct heap_capture *h = context;
	char period[AMOUNT_BYTES], strangers[64] = "", missed[512], changed[256], dropped[256];

	unprofiled_describe(&h->registry.unprofiled, h->registry.setup.pool, missed, sizeof(missed));
	backend_fallback_describe(&h->registry.fallback, changed, sizeof(changed));
	if (h->intake.strangers)
		snprintf(strangers, sizeof(strangers), ", %" PRIu64 " of strangers", h->intake.strangers);
	snprintf(text, bytes,
	    "period %s, backend %s, stack dump %u bytes; of all processes: %" PRIu64
	    " records lost in the rings, %" PRIu64 " bad%s%s%s%s%s",
	    amount_bytes((double)period_bytes, period),
	    backend_name(h->options->backend == BACKEND_WALK ? BACKEND_WALK : h->probe.backend),
	    h->probe.dump_bytes, h->intake.ring_lost, h->intake.bad, strangers, missed[0] ? "; " : "", missed,
	    changed[0] ? "; " : "", changed);
	for (int why = 0; why < SNAPSHOT_DROPS; why++)
		if (heap_source_dropped_describe(
		        h->source.dropped, (enum snapshot_drop)why, dropped, sizeof(dropped)))
			text_append(text, bytes, "; %s", dropped);
}

int heap_capture_open(struct heap_capture *h, const struct heap_capture_setup *setup)
{
	const struct heap_capture_options *options = h->options;
	char text[512];
	int error = intake_init(
	    &h->intake, setup->modules, setup->memory, h->probe.regs_mask, h->probe.rings != NULL);

	if (!error) /* the expressions were checked before */
		error = choice_new(options->only, options->exclude, &h->choice, text, sizeof(text));
	if (!error && !setup->offered)
		error = open_pool(h);
	if (error)
		return error;
	h->source = (struct heap_source){
	    .base = {.kind = &heap_source_kind, .scheduler = setup->scheduler},
	    .registry = &h->registry,
	    .events = setup->events,
	    .describe = describe,
	    .context = h,
	    .period_bytes = options->period_bytes,
	};
	h->registry = (struct registry){.setup = {
	                                    .intake = &h->intake,
	                                    .pool = h->pool,
	                                    .probe = &h->probe,
	                                    .modules = setup->modules,
	                                    .epoll_fd = setup->epoll_fd,
	                                    .verbosity = h->verbosity,
	                                    .may_yield = options->backend == BACKEND_AUTO,
	                                    .heap = {.labels = options->labels,
	                                        .temporary_ns = options->temporary_ns,
	                                        .deltas = options->delta},
	                                    .launch = setup->launch,
	                                    .choice = h->choice,
	                                    .listener = scheduler_listener(&h->source.base),
	                                }};
	registry_init(&h->registry);
	poll_interval_begin(&h->pace, clock_now_ns());
	error = h->pool ? watch(setup->epoll_fd, region_pool_fd(h->pool), EPOLLOUT | EPOLLET) : 0;
	for (size_t i = 0; h->pool && i < REGION_SOCKETS && !error; i++)
		error = watch(setup->epoll_fd, region_pool_socket_fd(h->pool, i), EPOLLIN | EPOLLET);
	for (size_t i = 0; h->probe.rings && i < rings_count(h->probe.rings) && !error; i++)
		error = watch(setup->epoll_fd, rings_fd(h->probe.rings, i), EPOLLIN);
	return error;
}

void heap_capture_close(struct heap_capture *h)
{
	if (h->registry.setup.intake)
		registry_fini(&h->registry);
	summary_list_clear(&h->source.ended);
	heap_source_fini(&h->source);
	choice_free(h->choice);
	region_pool_free(h->pool);
	intake_fini(&h->intake);
	probe_close(&h->probe);
}

/* ---- running */

static bool is_ring(const struct heap_capture *h, int fd)
{
	for (size_t i = 0; h->probe.rings && i < rings_count(h->probe.rings); i++)
		if (rings_fd(h->probe.rings, i) == fd)
			return true;
	return false;
}

bool heap_capture_event(struct heap_capture *h, int fd)
{
	if (!h->pool)
		return is_ring(h, fd);
	for (size_t i = 0; i < REGION_SOCKETS; i++)
		if (fd == region_pool_socket_fd(h->pool, i)) {
			region_pool_knock(h->pool);
			return true;
		}
	return fd == region_pool_fd(h->pool) || is_ring(h, fd);
}

bool heap_capture_look(struct heap_capture *h, bool ended)
{
	const uint64_t arrivals = h->registry.lives.arrivals, requests = h->registry.looks.requests;
	struct poll_interval_findings found = {.processes = registry_look_runs(&h->registry)};
	uint64_t looked_ns = clock_now_ns();

	found.samples = drain_some(&h->registry, DRAIN_NS);
	if (ended)
		registry_look_ended(&h->registry);
	found.processes += h->registry.lives.arrivals - arrivals;
	/* The daemon has read /proc of a new process when it accepted the region; and on a machine there are
	 * always new processes. It has no rings, only the buffers of each program run: many program runs
	 * with a few samples each are no flood. */
	if (!h->pool) {
		found.processes = 0;
		found.samples = h->registry.drain.most;
	}
	found.requests = h->registry.looks.requests - requests;
	poll_interval_note(&h->pace, &found, looked_ns);
	return found.requests > 0;
}
