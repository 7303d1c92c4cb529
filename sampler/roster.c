/* SPDX-License-Identifier: Apache-2.0 */
#include "sampler/roster.h"

#include "sampler/frees.h"

#include <errno.h>
#include <malloc.h>
#include <inttypes.h>
#include <poll.h>
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

size_t roster_drain(struct roster *roster)
{
	/* Not the number of records: a system-wide uprobe event also tells of every other process' mappings.
	 * */
	uint64_t before = roster->intake->taken, now = process_now_ns();
	for (struct image *image = roster->intake->images; image; image = image->next)
		if (image->ready)
			frees_note(image);
	if (roster->probe->rings)
		rings_drain(roster->probe->rings, roster->probe->regs_mask, intake_record, roster->intake,
		    &roster->intake->bad);
	size_t frees = 0;
	for (struct image *image = roster->intake->images; image; image = image->next)
		if (image->ready) {
			intake_buffers(roster->intake, image, roster->probe->rings ? now : UINT64_MAX);
			frees += frees_drain(image, now);
		}
	if (ladder_tend(&roster->ladder, roster->intake->images, roster->intake->ring_lost, now))
		lobby_set_mode(roster->lobby, ladder_mode(&roster->ladder));
	return roster->intake->taken - before + frees;
}

static void watch_process(struct roster *roster, struct process *process)
{
	if (process->watched)
		return;
	process->watched = true;
	roster->arrivals++;
	process->command = process->pid == roster->command && roster->command != 0;
	roster->command_seen = roster->command_seen || process->command;
	if (process->pidfd >= 0) {
		struct epoll_event event = {.events = EPOLLIN, .data.fd = process->pidfd};
		if (epoll_ctl(roster->epoll_fd, EPOLL_CTL_ADD, process->pidfd, &event) == 0)
			return;
	}
	roster->unwatched = true;
}

/* Called wherever something takes long: between two looks more images may come than there are spare regions.
 * */
static size_t take_claims(struct roster *roster)
{
	struct region *region;
	size_t count = 0;
	while ((region = lobby_next(roster->lobby))) {
		struct image *image = image_new(region, process_now_ns());
		if (!image)
			break;
		image->labels = roster->labels;
		image->next = roster->intake->images;
		roster->intake->images = image;
		count++;
	}
	return count;
}

/* The books are closed: what was sampled before the end has been read by now. */
static void finish(struct roster *roster, struct process *process, enum process_end end, int status)
{
	if (process->finished)
		return;
	take_claims(roster);
	process->finished = true;
	process->end = end;
	process->status = status;
	if (process->pidfd >= 0)
		epoll_ctl(roster->epoll_fd, EPOLL_CTL_DEL, process->pidfd, NULL);
	bool last_of_command = process->command && end != PROCESS_EXEC;
	process->image->unreleased++;
	process_inherit(process);
	if (process_samples(process) > 0 || process->counters.taken > 0 || last_of_command || process->shown)
		roster->closed(roster->context, process);
	else
		roster_release(roster, process);
}

/* Place 0 stays known as long as its image: children may yet ask for stacks that they inherited from it. */
void roster_release(struct roster *roster, struct process *process)
{
	process->image->unreleased--;
	region_release_place(process->image->region, process->place);
	if (process->place != 0)
		process_free(process);
}

const struct process *roster_find(const struct roster *roster, pid_t pid)
{
	for (const struct image *image = roster->intake->images; image; image = image->next)
		for (uint32_t i = 0; i < REGION_PLACES && image->live_processes; i++) {
			const struct process *process = image->process[i];
			if (process && process->watched && !process->finished && process->pid == pid &&
			    process->pidfd >= 0)
				return process;
		}
	return NULL;
}

static bool has_ended(const struct process *process)
{
	struct pollfd poll_fd = {.fd = process->pidfd, .events = POLLIN};
	return process->pidfd < 0 || (poll(&poll_fd, 1, 0) == 1 && poll_fd.revents & POLLIN);
}

/* COMMAND's own end waits for the front, which knows its status. */
void roster_finish_ended(struct roster *roster)
{
	roster_drain(roster);
	for (struct image *image = roster->intake->images; image; image = image->next)
		for (uint32_t i = 0; i < REGION_PLACES && image->live_processes; i++) {
			struct process *process = image->process[i];
			if (!process || process->finished || !has_ended(process))
				continue;
			if (process->command && !roster->front_gone && !roster->command_ended)
				continue;
			if (process->command && roster->status_known)
				finish(roster, process, PROCESS_EXITED, roster->command_status);
			else
				finish(roster, process, PROCESS_GONE, 0);
		}
}

/* Ids go up: an image with a higher one was executed later. */
static bool is_older(const struct image *image, const struct image *than)
{
	return (int32_t)(image->region->id - than->region->id) < 0;
}

static void finish_executed(struct roster *roster, pid_t pid, const struct image *by)
{
	for (struct image *image = roster->intake->images; image; image = image->next)
		for (uint32_t i = 0; i < REGION_PLACES && is_older(image, by) && image->live_processes; i++) {
			struct process *process = image->process[i];
			if (process && process->pid == pid && !process->finished) {
				roster_drain(roster);
				finish(roster, process, PROCESS_EXEC, 0);
			}
		}
}

/* ---- images */

/* Images whose header is complete now. Touches nothing but the images, so that it can be called while a ring
 * is being drained: a sample may come before the look that would have found its image. */
static size_t ready_images(struct roster *roster)
{
	size_t count = 0;
	for (struct image *image = roster->intake->images; image; image = image->next) {
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
	struct roster *roster = context;
	take_claims(roster);
	return ready_images(roster) > 0;
}

static void settle_image(struct roster *roster, struct image *image)
{
	image->settled = true;
	struct process *process = image_process(image, 0, roster->modules);
	if (!process)
		return;
	if (process->pid)
		finish_executed(roster, process->pid, image);
	watch_process(roster, process);
	ladder_begin(&roster->ladder, image, process);
}

/* Some are known already: their first sample came before this look. */
static void find_places(struct roster *roster, struct image *image)
{
	uint64_t claimed = atomic_load(&region_header(image->region)->places_claimed);
	if (claimed == image->places_seen)
		return;
	image->places_seen = claimed;
	for (uint32_t i = 1; i < REGION_PLACES; i++) {
		struct process *process = image_process(image, i, roster->modules);
		if (process && !process->finished)
			watch_process(roster, process);
	}
}

static void image_remove(struct roster *roster, struct image *image)
{
	struct image **link = &roster->intake->images;
	while (*link != image)
		link = &(*link)->next;
	*link = image->next;
	roster->incomplete += !image->ready;
	for (uint32_t i = 0; i < REGION_PLACES; i++)
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
	uint32_t running = 0;
	for (uint32_t i = 0; i < REGION_PLACES; i++)
		running += image->process[i] && (i != 0 || !image->process[i]->finished);
	if (running || image->unreleased)
		return false;
	return region_abandoned(image->region);
}

/* In the order in which they were executed: one may have made way for the next since the last look. */
static void settle_images(struct roster *roster)
{
	for (;;) {
		struct image *first = NULL;
		for (struct image *image = roster->intake->images; image; image = image->next)
			if (image->ready && !image->settled && (!first || is_older(image, first)))
				first = image;
		if (!first)
			return;
		settle_image(roster, first);
		take_claims(roster);
	}
}

size_t roster_tend(struct roster *roster)
{
	size_t came = take_claims(roster);
	ready_images(roster);
	settle_images(roster);
	uint64_t now = process_now_ns();
	bool linger = now - roster->linger_ns >= LINGER_NS || roster->command_ended;
	bool gone = false;
	for (struct image *image = roster->intake->images, *next; image; image = next) {
		next = image->next;
		if (image->ready)
			find_places(roster, image);
		if (linger && image_is_over(image, now)) {
			image_remove(roster, image);
			gone = true;
		}
	}
	if (linger && roster->unwatched)
		roster_finish_ended(roster);
	/* What a crowd needed while it waited to be written need not stay resident for ever: half of it and
	 * more did. */
	if (gone)
		malloc_trim(0);
	if (linger)
		roster->linger_ns = now;
	return came;
}

void roster_init(struct roster *roster)
{
	roster->ladder = (struct ladder){
	    .probe = roster->probe, .verbosity = roster->verbosity, .may_yield = roster->may_yield};
	roster->intake->find_images = find_images;
	roster->intake->context = roster;
}

int roster_adopt(struct roster *roster, struct region *region)
{
	struct image *image = image_new(region, process_now_ns());
	if (!image)
		return -ENOMEM;
	struct region_header *header = region_header(region);
	image->ready = true;
	image->settled = true;
	image->trigger_address = header->trigger_address;
	image->next = roster->intake->images;
	roster->intake->images = image;
	for (uint32_t i = 0; i < REGION_PLACES; i++) {
		struct process *process = image_process(image, i, roster->modules);
		if (!process)
			continue;
		process_adopt(process);
		watch_process(roster, process);
	}
	image->places_seen = atomic_load(&header->places_claimed);
	image->rung = image->event_rung =
	    roster->probe->backend == BACKEND_UPROBE ? BACKEND_UPROBE : BACKEND_COPY;
	atomic_store(&header->mode, image->rung == BACKEND_UPROBE ? REGION_MODE_TRIGGER : REGION_MODE_COPY);
	return 0;
}

void roster_set_period(struct roster *roster, uint64_t period_bytes)
{
	lobby_set_period(roster->lobby, period_bytes);
	for (struct image *image = roster->intake->images; image; image = image->next)
		atomic_store(&region_header(image->region)->period_bytes, period_bytes);
}

void roster_describe_missed(const struct roster *roster, char *text, size_t bytes)
{
	uint64_t unserved = lobby_unserved(roster->lobby);
	text[0] = '\0';
	if (unserved || roster->incomplete)
		snprintf(text, bytes,
		    "not profiled: %" PRIu64 " programs that found no region, %" PRIu64
		    " that did not get ready",
		    unserved, roster->incomplete);
}

bool roster_empty(const struct roster *roster)
{
	return !roster->intake->images;
}

void roster_fini(struct roster *roster)
{
	while (roster->intake->images)
		image_remove(roster, roster->intake->images);
}
