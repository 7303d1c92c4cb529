/* SPDX-License-Identifier: Apache-2.0 */
#include "sampler/heap/registry.h"

#include "pprof/table/array.h"
#include "pprof/text/log_line.h"
#include "pprof/text/utf8.h"
#include "sampler/heap/adoption.h"
#include "sampler/heap/claims.h"
#include "sampler/heap/container_starter.h"
#include "sampler/heap/executed.h"
#include "sampler/heap/image.h"
#include "sampler/heap/registry_steps.h"
#include "sampler/heap/unfollowed.h"
#include "sampler/heap/walked.h"
#include "sampler/linux/clock.h"
#include "sampler/linux/epoll_set.h"
#include "sampler/linux/thread_facts.h"
#include "sampler/region/region_program.h"

#include <errno.h>
#include <inttypes.h>
#include <malloc.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
	LINGER_END_NS = 20 * 1000000, /* after COMMAND's end */
	LINGER_NS = 500 * 1000000,    /* between checks whether any process still maps a region */
	EXECUTED_NS = 10 * 1000000,   /* between looks at what the processes of a young image execute */
	OFFERED_LINGERS = 4,          /* offers are looked at every fourth time alone */
	YOUNG_NS = 1000 * 1000000,    /* those of an older one are looked at every LINGER_NS */
	TRIM_NS = 2000 * 1000000,     /* between returns of freed memory: images end all the time */
	ADOPTION_NS = 20 * 1000000,   /* for a sample that was being taken when books were taken over */
	LOADING_NS = 2000 * 1000000,  /* for so long an executed program may take to load the library */
};

/* ---- processes */

static void watch_end(struct registry *registry, const struct process *process)
{
	if (process->target.pidfd < 0 || epoll_set_add(registry->epoll_fd, process->target.pidfd) != 0)
		registry->unwatched = true;
}

/* Ids increase: an image with a higher one was executed later. */
static bool is_older(const struct image *image, const struct image *than)
{
	return (int32_t)(image->region->id - than->region->id) < 0;
}

/* The image that this process executed, or one after it. (One that declined its region has left already; of
 * COMMAND's the reason is kept.) */
static bool has_successor(const struct registry *registry, const struct process *process)
{
	for (const struct image *image = registry->intake->images; image; image = image->next)
		if (is_older(process->image, image) && !region_declined_text(image->region) &&
		    region_header(image->region)->pid == (uint32_t)process->target.pid)
			return true;
	return false;
}

/* Why the program that it has executed does not use its region, which has been counted already; NULL: it
 * does, or nothing is known of it. */
static const char *declined_before(const struct registry *registry, const struct process *process)
{
	for (const struct image *image = registry->intake->images; image; image = image->next)
		if (image->declined && is_older(process->image, image) && process->target.pid &&
		    region_header(image->region)->pid == (uint32_t)process->target.pid)
			return image->declined;
	return NULL;
}

void registry_watch(struct registry *registry, struct process *process)
{
	if (process->watched)
		return;
	process->watched = true;
	registry->arrivals++;
	process->target.command = launch_is_command(registry->launch, process->target.pid);
	registry->command_seen = registry->command_seen || process->target.command;
	if (process->target.command)
		registry->command_unchosen = process->image->unchosen;
	if (!process->image->unchosen) {
		executed_begin(process);
		/* Now: when it is closed, that image may be gone. */
		process->followed = process->target.unseen[0] && has_successor(registry, process);
		if (process->followed)
			process->target.unseen[0] = '\0';
		process->executed_declined = declined_before(registry, process);
		if (registry->verbosity >= 0 && !registry->containers_said && !process->image->attached_pid)
			registry->containers_said = container_starter_say(process->target.pid);
		registry->listener.watched(registry->listener.context, &process->target);
	}
	watch_end(registry, process);
}

struct image *registry_add_image(struct registry *registry, struct region *region)
{
	struct image *image = image_new(region, clock_now_ns());

	if (image && intake_add_image(registry->intake, image) == 0) {
		image->heap = registry->heap;
		return image;
	}
	image_free(image);
	return NULL;
}

/* Called also during long work: otherwise more images may start between two looks than there are spare
 * regions. */
static size_t take_claims(struct registry *registry)
{
	struct region *region;
	size_t count = 0;

	while (registry->pool && (region = region_pool_next(registry->pool)) &&
	    registry_add_image(registry, region))
		count++;
	return count;
}

/* What the earlier sampler had not read is read first, and has its stacks. Then what it has logged, and only
 * then is something written to the log. */
static void end_adoption(struct registry *registry, struct image *image)
{
	intake_buffers(registry->intake, image, UINT64_MAX);
	for (uint32_t i = 0; i < image->places_end; i++)
		if (image->process[i] && image->process[i]->was_running)
			adoption_end(image->process[i]);
	image->adopting = false;
	for (uint32_t i = 0; i < image->places_end; i++)
		if (image->process[i])
			adoption_log(image->process[i]);
}

void registry_finish(struct registry *registry, struct process *process, enum target_end end, int status)
{
	if (process->target.closed)
		return;
	/* Its samples, and its end, may have come before the first look at its image. */
	registry_watch(registry, process);
	take_claims(registry);
	if (process->image->adopting)
		end_adoption(registry, process->image);
	process->target.closed = true;
	process->target.end = end;
	process->target.status = status;
	if (process->target.pidfd >= 0)
		epoll_set_remove(registry->epoll_fd, process->target.pidfd);
	if (end == TARGET_EXEC)
		backend_fallback_executed(&registry->fallback, process->image);
	process->image->unreleased++;
	if (process->image->unchosen) {
		registry->unchosen++;
		memcpy(registry->unchosen_title, process->target.title, sizeof(registry->unchosen_title));
		utf8_disarm(registry->unchosen_title, strlen(registry->unchosen_title));
		registry_release(registry, process);
		return;
	}
	process_inherit(process);
	registry->listener.closed(registry->listener.context, &process->target);
}

bool registry_has_ended(struct registry *registry, struct process *process)
{
	if (image_look_again(process) && process->watched) {
		executed_begin(process);
		watch_end(registry, process);
	}
	return process->target.pidfd < 0 ? !process->unsure : target_has_ended(&process->target);
}

/* It has executed a program that has not reported to us. Unless that one's image is just becoming ready. */
static void finish_unseen(struct registry *registry, struct process *process)
{
	struct target *target = &process->target;

	take_claims(registry);
	if (has_successor(registry, process))
		target->unseen[0] = '\0';
	char *reason = strstr(target->unseen, EXECUTED_UNSEEN);
	const char *declined = process->executed_declined;
	if (target->command && registry->command_declined_text)
		declined = registry->command_declined_text;
	if (reason && declined)
		snprintf(reason, (size_t)(target->unseen + sizeof(target->unseen) - reason),
		    EXECUTED_UNSEEN "%s", declined);
	if (reason && !process->executed_declined) {
		registry->executed_unseen++;
		memcpy(registry->executed_text, target->unseen, sizeof(registry->executed_text));
	}
	registry_finish(registry, process, TARGET_EXEC, 0);
}

/* Closes the processes that executed the program of image `by`. Their samples are read before that, all of
 * them: they were written before that image became ready. From rings they are read once in a round. */
static void finish_executed(struct registry *registry, pid_t pid, const struct image *by, bool *drained)
{
	struct process *process;
	const struct image *read = NULL;

	for (size_t cursor = 0;
	     (process = table_next(&registry->intake->processes, (uint64_t)pid, &cursor));) {
		if (process->target.closed || !is_older(process->image, by))
			continue;
		process->target.unseen[0] = '\0';
		if (*drained || read == process->image) {
			registry_finish(registry, process, TARGET_EXEC, 0);
		} else {
			read = process->image;
			registry_drain_image(registry, process->image);
			*drained = registry->probe->rings != NULL;
		}
		cursor = 0; /* the table may have changed */
	}
}

/* ---- images */

/* At once, so that what is not to be recorded takes as few samples as possible. Its name and command line are
 * hostile. */
static void choose(struct registry *registry, struct image *image)
{
	char path[REGION_PATH_BYTES], line[REGION_COMMAND_LINE_BYTES];

	if (!registry->choice)
		return;
	region_program_path(image->region, path);
	region_program_command_line(image->region, line);
	utf8_disarm(path, strlen(path)); /* an expression matches characters, not bytes */
	utf8_disarm(line, strlen(line));
	image->unchosen = !choice_takes(registry->choice, path, line);
	if (image->unchosen)
		atomic_store(&region_header(image->region)->mode, REGION_MODE_OFF);
}

/* It is counted, with its reason: not once more for the process that executed it. */
static void note_declined(struct registry *registry, const struct image *image)
{
	const pid_t pid = (pid_t)region_header(image->region)->pid;
	struct process *process;

	registry->declined_text = image->declined;
	registry->declined++;
	if (pid == registry->launch->pid)
		registry->command_declined_text = image->declined;
	for (size_t cursor = 0;
	     pid && (process = table_next(&registry->intake->processes, (uint64_t)pid, &cursor));)
		if (!process->target.closed && is_older(process->image, image))
			process->executed_declined = image->declined;
}

/* Images whose header is complete now. Adds and removes nothing, so that it can be called while a ring is
 * being drained: a sample may come before the look that would have found its image. */
static size_t ready_images(struct registry *registry)
{
	size_t count = 0;

	for (struct image *image = registry->intake->images; image; image = image->next) {
		if (image->ready)
			continue;
		const struct region_header *header = region_header(image->region);
		const char *declined = region_declined_text(image->region);
		if (declined && !image->declined) {
			image->declined = declined;
			note_declined(registry, image);
		}
		if (atomic_load_explicit(&header->state, memory_order_acquire) != REGION_READY)
			continue;
		image->ready = true;
		image->trigger_address = header->trigger_address;
		image->event_backend = registry->probe->backend; /* until it is settled */
		choose(registry, image);
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

static void settle_image(struct registry *registry, struct image *image, bool *drained)
{
	image->settled = true;
	struct process *process = image_process(image, 0, registry->modules);
	if (!process)
		return;
	if (process->target.pid)
		finish_executed(registry, process->target.pid, image, drained);
	registry_watch(registry, process);
	if (image->unchosen)
		image->backend = BACKEND_COPY; /* no event is opened for it, and none missed */
	else
		backend_fallback_begin(&registry->fallback, image, process);
}

/* Some are known already, because their first sample arrived before this look. */
static void find_places(struct registry *registry, struct image *image)
{
	uint64_t claimed = atomic_load(&region_header(image->region)->places_claimed);

	if (claimed == image->places_seen)
		return;
	image->places_seen = claimed;
	for (uint32_t i = 1; i < REGION_PLACES; i++) {
		struct process *process = image_process(image, i, registry->modules);

		if (process && !process->target.closed)
			registry_watch(registry, process);
	}
}

/* Before the program is on its way for longer than loading takes, its image may yet become ready. */
static void look_at_executed(struct registry *registry, struct image *image, uint64_t now)
{
	for (uint32_t i = 0; i < image->places_end && image->live_processes; i++) {
		struct process *process = image->process[i];

		if (!process || process->target.closed || !process->watched)
			continue;
		executed_look(process, now);
		/* Not earlier than `now`: to close another one the rings were drained meanwhile. */
		if (!process->target.unseen[0] || now <= process->executed_ns + LOADING_NS)
			continue;
		registry_drain_image(registry, image);
		finish_unseen(registry, process);
	}
}

static void note_requests(struct registry *registry, struct image *image)
{
	uint64_t requests = atomic_load(&region_header(image->region)->requests);

	registry->requests += requests != image->requests_seen;
	image->requests_seen = requests;
}

static void image_remove(struct registry *registry, struct image *image)
{
	unfollowed_end(image, &registry->intake->births);
	intake_remove_image(registry->intake, image);
	registry->incomplete += !image->ready && !image->declined && !image->offered;
	for (uint32_t i = 0; i < REGION_PLACES; i++)
		if (image->process[i])
			process_free(image->process[i]);
	walked_free(image);
	image_free(image);
}

static int compare_images(const void *a, const void *b)
{
	return is_older(*(struct image *const *)a, *(struct image *const *)b) ? -1 : 1;
}

/* In the order in which they were executed: one process may have executed several since the last look. One
 * round, with one drain before it: images that become ready meanwhile wait for the next round, so that ended
 * processes are handled in between. */
static void settle_images(struct registry *registry)
{
	size_t count = 0, settled = 0;

	for (const struct image *image = registry->intake->images; image; image = image->next)
		count += image->ready && !image->settled;
	if (!count ||
	    array_reserve(&registry->batch, &registry->batch_capacity, count, sizeof(*registry->batch)) != 0)
		return;
	for (struct image *image = registry->intake->images; image; image = image->next)
		if (image->ready && !image->settled)
			registry->batch[settled++] = image;
	qsort(registry->batch, count, sizeof(*registry->batch), compare_images);
	bool drained = false;
	for (size_t i = 0; i < count; i++) {
		settle_image(registry, registry->batch[i], &drained);
		take_claims(registry);
	}
}

size_t registry_settle_claims(struct registry *registry)
{
	size_t came = take_claims(registry);

	ready_images(registry);
	settle_images(registry);
	return came;
}

/* It had made way for another program before it was found, but somebody with its number lives: that one may
 * not have loaded the library yet, and its image closes this process. Unless that is there already: what a
 * child leaves in its parent's image may be found later. */
static bool is_loading(const struct registry *registry, const struct process *process, uint64_t now)
{
	const struct target *target = &process->target;

	return target->unseen[0] && target->pidfd < 0 && now <= process->executed_ns + LOADING_NS &&
	    thread_facts_read(target->pid).pid == target->pid && !has_successor(registry, process);
}

static void finish_ended(struct registry *registry, struct process *process)
{
	const struct launch *launch = registry->launch;

	registry_watch(registry, process);
	/* COMMAND's own end waits for the front, which knows its status. */
	if (process->target.command && !launch->front_gone && !launch->ended)
		return;
	/* The drain after it was noted may have told of the exec. */
	if (is_loading(registry, process, clock_now_ns()))
		return;
	if (process->target.unseen[0])
		finish_unseen(registry, process);
	else if (process->followed)
		registry_finish(registry, process, TARGET_EXEC, 0);
	else if (process->target.command && launch->status_known)
		registry_finish(registry, process, TARGET_EXITED, launch->status);
	else
		registry_finish(
		    registry, process, process->target.pidfd < 0 ? TARGET_UNSEEN : TARGET_GONE, 0);
}

/* Asks all in one call, for a daemon has hundreds. NULL: no memory; for free(). What is readable may have
 * ended (or be no pidfd); what is not has not. */
static struct pollfd *poll_all(const struct table *processes)
{
	struct pollfd *fds = calloc(processes->count + 1, sizeof(*fds));

	for (size_t i = 0; fds && i < processes->count; i++) {
		const struct process *process = processes->entries[i].item;

		fds[i] = (struct pollfd){process->target.closed ? -1 : process->target.pidfd, POLLIN, 0};
	}
	if (fds && poll(fds, processes->count, 0) < 0) {
		free(fds);
		return NULL;
	}
	return fds;
}

/* True: some have ended. */
static bool note_ended(struct registry *registry)
{
	const struct table *processes = &registry->intake->processes;
	const size_t count = processes->count;
	const uint64_t now = clock_now_ns();
	struct pollfd *fds = poll_all(processes);
	bool some = false;

	/* From behind: one whose pid was wrong becomes the last. */
	for (size_t i = processes->count; i-- > 0;) {
		struct process *process = processes->entries[i].item;
		const bool runs = fds && i < count && !process->unsure && process->target.pidfd >= 0 &&
		    fds[i].fd == process->target.pidfd && !fds[i].revents;

		process->ended = !process->target.closed && !runs && registry_has_ended(registry, process) &&
		    !is_loading(registry, process, now);
		some = some || process->ended;
	}
	free(fds);
	return some;
}

void registry_finish_ended(struct registry *registry)
{
	const struct table *processes = &registry->intake->processes;

	if (!note_ended(registry))
		return;
	registry_drain_ended(registry); /* after the end of each */
	/* What has ended may have executed another program before, and be closed by that one's image. */
	registry_settle_claims(registry);
	/* From behind: a process that goes is replaced by the last. */
	for (size_t i = processes->count; i-- > 0;) {
		struct process *process = processes->entries[i].item;

		if (process->ended && !process->target.closed)
			finish_ended(registry, process);
	}
}

size_t registry_tend(struct registry *registry)
{
	size_t came = registry_settle_claims(registry);
	uint64_t now = clock_now_ns();
	bool linger = now - registry->linger_ns >= (registry->launch->ended ? LINGER_END_NS : LINGER_NS);
	bool often = now - registry->executed_ns >= EXECUTED_NS, gone = false;

	if (linger)
		registry_look_who_maps(registry, now);
	for (struct image *image = registry->intake->images, *next; image; image = next) {
		next = image->next;
		if (image->adopting && now - image->claimed_ns >= ADOPTION_NS)
			end_adoption(registry, image);
		if (image->ready) {
			find_places(registry, image);
			claims_tend(image, now);
			note_requests(registry, image);
			/* Of an offer no profile says that a program was not seen, and looks cost a daemon
			 * most. */
			const bool due = image->offered
			    ? linger && (registry->lingers + image->region->id) % OFFERED_LINGERS == 0
			    : linger || (often && now - image->claimed_ns < YOUNG_NS);
			if (!image->unchosen && due) {
				look_at_executed(registry, image, now);
				unfollowed_tend(
				    image, registry->probe->backend == BACKEND_UPROBE, registry->verbosity);
			}
		}
		if (linger && registry_is_over(image, now)) {
			image_remove(registry, image);
			gone = true;
		}
	}
	if (linger && registry->unwatched)
		registry_finish_ended(registry);
	/* After a burst of processes return freed memory to the kernel; glibc kept more than half of it. */
	registry->to_trim = registry->to_trim || gone;
	if (registry->to_trim && now - registry->trimmed_ns >= TRIM_NS) {
		malloc_trim(0);
		registry->trimmed_ns = now;
		registry->to_trim = false;
	}
	if (linger)
		registry->linger_ns = now;
	registry->lingers += linger;
	if (often)
		registry->executed_ns = now;
	return came;
}

void registry_init(struct registry *registry)
{
	registry->drain_round = 1;
	registry->fallback = (struct backend_fallback){
	    .probe = registry->probe, .verbosity = registry->verbosity, .may_yield = registry->may_yield};
	registry->intake->find_images = find_images;
	registry->intake->context = registry;
}

void registry_fini(struct registry *registry)
{
	while (registry->intake->images)
		image_remove(registry, registry->intake->images);
	free(registry->batch);
	free(registry->searches);
	registry->batch = NULL;
	registry->searches = NULL;
	registry->batch_capacity = registry->searches_capacity = 0;
}
