/* SPDX-License-Identifier: Apache-2.0 */
#include "sampler/heap/tend.h"

#include "pprof/text/clock.h"
#include "sampler/heap/abandoned.h"
#include "sampler/heap/adoption.h"
#include "sampler/heap/drain.h"
#include "sampler/heap/executed.h"
#include "sampler/heap/image.h"
#include "sampler/heap/process_life.h"
#include "sampler/heap/stale_places.h"
#include "sampler/heap/unfollowed.h"

#include <malloc.h>
#include <stdlib.h>

enum {
	LINGER_END_NS = 20 * 1000000, /* after COMMAND's end */
	LINGER_NS = 500 * 1000000,    /* between checks whether any process still maps a region */
	EXECUTED_NS = 10 * 1000000,   /* between looks at what the processes of a young image execute */
	OFFERED_LINGERS = 4,          /* offers are looked at every fourth time alone */
	YOUNG_NS = 1000 * 1000000,    /* the processes of an older image are looked at every LINGER_NS */
	TRIM_NS = 2000 * 1000000,     /* between returns of freed memory: images end all the time */
	ADOPTION_NS = 20 * 1000000,   /* for a sample that was being taken when books were taken over */
};

/* ---- images that are ready */

static void settle_image(struct registry *registry, struct image *image, bool *drained)
{
	registry_settled(image);
	struct process *process = image_process(image, 0, registry->setup.modules);
	if (!process)
		return;
	if (process->target.pid)
		process_life_close_executed(registry, process->target.pid, image, drained);
	process_life_watch(registry, process);
	backend_fallback_begin(&registry->fallback, image, process);
}

static int compare_images(const void *a, const void *b)
{
	return registry_is_older(*(struct image *const *)a, *(struct image *const *)b) ? -1 : 1;
}

/* In the order in which they were executed: one process may have executed several since the last look. One
 * round, with one drain before it: images that become ready meanwhile wait for the next round, so that ended
 * processes are handled in between. */
static void settle_images(struct registry *registry)
{
	const struct books *books = &registry->setup.intake->books;
	size_t count = 0, ready = 0;
	bool drained = false;

	books_each_image (image, books)
		ready += image->life.state == IMAGE_READY;
	struct image **batch = ready ? calloc(ready, sizeof(*batch)) : NULL;
	if (!batch)
		return;
	books_each_image (image, books)
		if (image->life.state == IMAGE_READY)
			batch[count++] = image;
	qsort(batch, count, sizeof(*batch), compare_images);
	for (size_t i = 0; i < count; i++) {
		settle_image(registry, batch[i], &drained);
		registry_take_claims(registry);
	}
	free(batch);
}

size_t tend_claims(struct registry *registry)
{
	size_t came = registry_take_claims(registry);

	registry_find_ready(registry);
	settle_images(registry);
	return came;
}

/* ---- an image */

/* Some are known already, because their first sample arrived before this look. */
static void find_places(struct registry *registry, struct image *image)
{
	uint64_t claimed = atomic_load(&region_header(image->region)->places_claimed);

	if (claimed == image->looks.places_seen)
		return;
	image->looks.places_seen = claimed;
	for (uint32_t i = 1; i < REGION_PLACES; i++) {
		struct process *process = image_process(image, i, registry->setup.modules);

		if (process && !process->target.closed)
			process_life_watch(registry, process);
	}
}

static void note_requests(struct registry *registry, struct image *image)
{
	uint64_t requests = atomic_load(&region_header(image->region)->requests);

	registry->tend.requests += requests != image->looks.requests_seen;
	image->looks.requests_seen = requests;
}

/* Until a program has had the time to load the library, its image may yet become ready. */
static void look_at_executed(struct registry *registry, struct image *image, uint64_t now)
{
	image_each_process (process, image) {
		if (process->target.closed || !process->life.watched)
			continue;
		executed_look(process, now);
		/* Not earlier than `now`: to close another process the rings were drained meanwhile. */
		if (!process->target.unseen[0] || now <= process->executed.noted_ns + PROCESS_LIFE_LOADING_NS)
			continue;
		drain_image(registry, image);
		process_life_close_unseen(registry, process);
	}
}

/* linger: all images are looked at this time, and not the young ones alone. No profile says of an offered
 * image that a program was not seen, and looks cost a daemon most. */
static bool is_due(const struct registry *registry, const struct image *image, uint64_t now, bool linger)
{
	const bool often = now - registry->tend.executed_ns >= EXECUTED_NS;

	if (image->origin.offered)
		return linger && (registry->tend.lingers + image->region->id) % OFFERED_LINGERS == 0;
	return linger || (often && now - image->claimed_ns < YOUNG_NS);
}

static void tend_image(struct registry *registry, struct image *image, uint64_t now, bool linger)
{
	if (image->life.state == IMAGE_ADOPTING && now - image->claimed_ns >= ADOPTION_NS)
		adoption_end(registry->setup.intake, image);
	if (!image_is_ready(image))
		return;
	find_places(registry, image);
	stale_places_tend(image, now);
	note_requests(registry, image);
	if (image->life.unchosen || !is_due(registry, image, now, linger))
		return;
	look_at_executed(registry, image, now);
	unfollowed_tend(image, registry->setup.probe->backend == BACKEND_UPROBE, registry->setup.verbosity);
}

/* ---- all */

void tend_ended(struct registry *registry)
{
	if (!process_life_note_ended(registry))
		return;
	drain_ended(registry); /* after the end of each */
	/* A process that has ended may have executed another program before, and be closed by its image. */
	tend_claims(registry);
	process_life_close_ended(registry);
}

/* After a burst of processes returns freed memory to the kernel; glibc kept more than half of it. */
static void trim(struct tend *tend, uint64_t now)
{
	if (!tend->to_trim || now - tend->trimmed_ns < TRIM_NS)
		return;
	malloc_trim(0);
	tend->trimmed_ns = now;
	tend->to_trim = false;
}

size_t tend_images(struct registry *registry)
{
	const struct books *books = &registry->setup.intake->books;
	struct tend *tend = &registry->tend;
	size_t came = tend_claims(registry);
	uint64_t now = clock_now_ns();
	bool linger = now - tend->linger_ns >= (registry->setup.launch->ended ? LINGER_END_NS : LINGER_NS);

	if (linger)
		abandoned_look(&registry->abandoned, books, now);
	books_each_image (image, books) {
		tend_image(registry, image, now, linger);
		if (!linger || !abandoned_is(image, now))
			continue;
		registry_remove_image(registry, image);
		tend->to_trim = true;
	}
	if (linger && registry->lives.unwatched)
		tend_ended(registry);
	trim(tend, now);
	if (now - tend->executed_ns >= EXECUTED_NS)
		tend->executed_ns = now;
	if (linger)
		tend->linger_ns = now;
	tend->lingers += linger;
	return came;
}
