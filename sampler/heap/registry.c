/* SPDX-License-Identifier: Apache-2.0 */
#include "sampler/heap/registry.h"

#include "sampler/heap/free_log.h"
#include "sampler/linux/clock.h"

#include <errno.h>
#include <malloc.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>

enum {
	/* between the ticket and a complete header; then the image is given up */
	CLAIM_LIMIT_NS = 2000 * 1000000,
	LINGER_NS = 500 * 1000000, /* between looks at whether anybody still maps an image's region */
};

/* ---- processes */

size_t registry_drain(struct registry *registry)
{
	/* Not the number of records: a system-wide uprobe event also tells of every other process' mappings.
	 * */
	uint64_t before = registry->intake->taken, now = clock_now_ns();
	for (struct image *image = registry->intake->images; image; image = image->next)
		if (image->ready)
			free_log_note(image);
	if (registry->probe->rings)
		rings_drain(registry->probe->rings, registry->probe->regs_mask, intake_record,
		    registry->intake, &registry->intake->bad);
	size_t frees = 0;
	for (struct image *image = registry->intake->images; image; image = image->next)
		if (image->ready) {
			intake_buffers(registry->intake, image, registry->probe->rings ? now : UINT64_MAX);
			frees += free_log_drain(image, now);
		}
	if (backend_fallback_tend(
	        &registry->fallback, registry->intake->images, registry->intake->ring_lost, now))
		region_pool_set_mode(registry->pool, backend_fallback_mode(&registry->fallback));
	return registry->intake->taken - before + frees;
}

static void watch_process(struct registry *registry, struct process *process)
{
	if (process->watched)
		return;
	process->watched = true;
	registry->arrivals++;
	process->command = process->target.pid == registry->command && registry->command != 0;
	registry->command_seen = registry->command_seen || process->command;
	if (process->target.pidfd >= 0) {
		struct epoll_event event = {.events = EPOLLIN, .data.fd = process->target.pidfd};
		if (epoll_ctl(registry->epoll_fd, EPOLL_CTL_ADD, process->target.pidfd, &event) == 0)
			return;
	}
	registry->unwatched = true;
}

/* Called wherever something takes long: between two looks more images may come than there are spare regions.
 * */
static size_t take_claims(struct registry *registry)
{
	struct region *region;
	size_t count = 0;
	while ((region = region_pool_next(registry->pool))) {
		struct image *image = image_new(region, clock_now_ns());
		if (!image)
			break;
		image->labels = registry->labels;
		image->next = registry->intake->images;
		registry->intake->images = image;
		count++;
	}
	return count;
}

/* The books are closed: what was sampled before the end has been read by now. */
static void finish(struct registry *registry, struct process *process, enum target_end end, int status)
{
	if (process->target.closed)
		return;
	take_claims(registry);
	process->target.closed = true;
	process->target.end = end;
	process->target.status = status;
	if (process->target.pidfd >= 0)
		epoll_ctl(registry->epoll_fd, EPOLL_CTL_DEL, process->target.pidfd, NULL);
	process->image->unreleased++;
	process_inherit(process);
	registry->closed(registry->context, process);
}

/* Place 0 stays known as long as its image: children may yet ask for stacks that they inherited from it. */
void registry_release(struct registry *registry, struct process *process)
{
	process->image->unreleased--;
	region_release_place(process->image->region, process->place);
	if (process->place != 0)
		process_free(process);
}

const struct process *registry_find(const struct registry *registry, pid_t pid)
{
	for (const struct image *image = registry->intake->images; image; image = image->next)
		for (uint32_t i = 0; i < image->places_end && image->live_processes; i++) {
			const struct process *process = image->process[i];
			if (process && process->watched && !process->target.closed &&
			    process->target.pid == pid && process->target.pidfd >= 0)
				return process;
		}
	return NULL;
}

/* One that had ended when we first looked has no pidfd. */
static bool has_ended(const struct process *process)
{
	return process->target.pidfd < 0 || target_has_ended(&process->target);
}

/* COMMAND's own end waits for the front, which knows its status. */
void registry_finish_ended(struct registry *registry)
{
	registry_drain(registry);
	for (struct image *image = registry->intake->images; image; image = image->next)
		for (uint32_t i = 0; i < image->places_end && image->live_processes; i++) {
			struct process *process = image->process[i];
			if (!process || process->target.closed || !has_ended(process))
				continue;
			if (process->command && !registry->front_gone && !registry->command_ended)
				continue;
			if (process->command && registry->status_known)
				finish(registry, process, TARGET_EXITED, registry->command_status);
			else
				finish(registry, process, TARGET_GONE, 0);
		}
}

/* Ids go up: an image with a higher one was executed later. */
static bool is_older(const struct image *image, const struct image *than)
{
	return (int32_t)(image->region->id - than->region->id) < 0;
}

static void finish_executed(struct registry *registry, pid_t pid, const struct image *by)
{
	for (struct image *image = registry->intake->images; image; image = image->next)
		for (uint32_t i = 0; i < image->places_end && is_older(image, by) && image->live_processes;
		     i++) {
			struct process *process = image->process[i];
			if (process && process->target.pid == pid && !process->target.closed) {
				registry_drain(registry);
				finish(registry, process, TARGET_EXEC, 0);
			}
		}
}

/* ---- images */

/* Images whose header is complete now. Touches nothing but the images, so that it can be called while a ring
 * is being drained: a sample may come before the look that would have found its image. */
static size_t ready_images(struct registry *registry)
{
	size_t count = 0;
	for (struct image *image = registry->intake->images; image; image = image->next) {
		const struct region_header *header = region_header(image->region);
		if (image->ready ||
		    atomic_load_explicit(&header->state, memory_order_acquire) != REGION_READY)
			continue;
		image->ready = true;
		image->trigger_address = header->trigger_address;
		count++;
	}
	return count;
}

static bool find_images(void *context)
{
	struct registry *registry = context;
	take_claims(registry);
	return ready_images(registry) > 0;
}

static void settle_image(struct registry *registry, struct image *image)
{
	image->settled = true;
	struct process *process = image_process(image, 0, registry->modules);
	if (!process)
		return;
	if (process->target.pid)
		finish_executed(registry, process->target.pid, image);
	watch_process(registry, process);
	backend_fallback_begin(&registry->fallback, image, process);
}

/* Some are known already: their first sample came before this look. */
static void find_places(struct registry *registry, struct image *image)
{
	uint64_t claimed = atomic_load(&region_header(image->region)->places_claimed);
	if (claimed == image->places_seen)
		return;
	image->places_seen = claimed;
	for (uint32_t i = 1; i < REGION_PLACES; i++) {
		struct process *process = image_process(image, i, registry->modules);
		if (process && !process->target.closed)
			watch_process(registry, process);
	}
}

static void image_remove(struct registry *registry, struct image *image)
{
	struct image **link = &registry->intake->images;
	while (*link != image)
		link = &(*link)->next;
	*link = image->next;
	registry->incomplete += !image->ready;
	for (uint32_t i = 0; i < image->places_end; i++)
		if (image->process[i])
			process_free(image->process[i]);
	image_free(image);
}

/* An image without a living process goes when nobody maps its region any more: a forked child that has had
 * nothing to say so far would still claim a place in it. */
static bool image_is_over(const struct image *image, uint64_t now)
{
	if (!image->ready && now - image->claimed_ns < CLAIM_LIMIT_NS)
		return false;
	if (!image->ready && image->region->holder)
		return true; /* another user's process, and not one that keeps its word */
	uint32_t running = 0;
	for (uint32_t i = 0; i < image->places_end; i++)
		running += image->process[i] && (i != 0 || !image->process[i]->target.closed);
	if (running || image->unreleased)
		return false;
	return region_abandoned(image->region);
}

/* In the order in which they were executed: one may have made way for the next since the last look. */
static void settle_images(struct registry *registry)
{
	for (;;) {
		struct image *first = NULL;
		for (struct image *image = registry->intake->images; image; image = image->next)
			if (image->ready && !image->settled && (!first || is_older(image, first)))
				first = image;
		if (!first)
			return;
		settle_image(registry, first);
		take_claims(registry);
	}
}

size_t registry_tend(struct registry *registry)
{
	size_t came = take_claims(registry);
	ready_images(registry);
	settle_images(registry);
	uint64_t now = clock_now_ns();
	bool linger = now - registry->linger_ns >= LINGER_NS || registry->command_ended;
	bool gone = false;
	for (struct image *image = registry->intake->images, *next; image; image = next) {
		next = image->next;
		if (image->ready)
			find_places(registry, image);
		if (linger && image_is_over(image, now)) {
			image_remove(registry, image);
			gone = true;
		}
	}
	if (linger && registry->unwatched)
		registry_finish_ended(registry);
	/* What a crowd needed while it waited to be written need not stay resident for ever: half of it and
	 * more did. */
	if (gone)
		malloc_trim(0);
	if (linger)
		registry->linger_ns = now;
	return came;
}

void registry_init(struct registry *registry)
{
	registry->fallback = (struct backend_fallback){
	    .probe = registry->probe, .verbosity = registry->verbosity, .may_yield = registry->may_yield};
	registry->intake->find_images = find_images;
	registry->intake->context = registry;
}

int registry_adopt(struct registry *registry, struct region *region)
{
	struct image *image = image_new(region, clock_now_ns());
	if (!image)
		return -ENOMEM;
	struct region_header *header = region_header(region);
	image->ready = true;
	image->settled = true;
	image->trigger_address = header->trigger_address;
	image->next = registry->intake->images;
	registry->intake->images = image;
	for (uint32_t i = 0; i < REGION_PLACES; i++) {
		struct process *process = image_process(image, i, registry->modules);
		if (!process)
			continue;
		process_adopt(process);
		watch_process(registry, process);
	}
	image->places_seen = atomic_load(&header->places_claimed);
	image->backend = image->event_backend =
	    registry->probe->backend == BACKEND_UPROBE ? BACKEND_UPROBE : BACKEND_COPY;
	atomic_store(
	    &header->mode, image->backend == BACKEND_UPROBE ? REGION_MODE_TRIGGER : REGION_MODE_COPY);
	return 0;
}

void registry_set_period(struct registry *registry, uint64_t period_bytes)
{
	region_pool_set_period(registry->pool, period_bytes);
	for (struct image *image = registry->intake->images; image; image = image->next)
		atomic_store(&region_header(image->region)->period_bytes, period_bytes);
}

void registry_describe_missed(const struct registry *registry, char *text, size_t bytes)
{
	uint64_t unserved = region_pool_unserved(registry->pool);
	uint64_t strangers = region_pool_strangers(registry->pool);
	int length = 0;
	text[0] = '\0';
	if (unserved || registry->incomplete)
		length = snprintf(text, bytes,
		    "not profiled: %" PRIu64 " programs that found no region, %" PRIu64
		    " that did not get ready",
		    unserved, registry->incomplete);
	if (strangers && length < (int)bytes)
		snprintf(text + length, bytes - (size_t)length,
		    "%srefused at the region socket: %" PRIu64 " connections without the session's cookie",
		    length ? "; " : "", strangers);
}

bool registry_empty(const struct registry *registry)
{
	return !registry->intake->images;
}

void registry_fini(struct registry *registry)
{
	while (registry->intake->images)
		image_remove(registry, registry->intake->images);
}
