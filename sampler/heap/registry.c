/* SPDX-License-Identifier: Apache-2.0 */
#include "sampler/heap/registry.h"

#include "pprof/text/clock.h"
#include "pprof/text/utf8.h"
#include "sampler/heap/executed.h"
#include "sampler/heap/image.h"
#include "sampler/heap/unfollowed.h"
#include "sampler/heap/walked.h"
#include "sampler/region/region_program.h"

#include <string.h>

bool registry_is_older(const struct image *image, const struct image *than)
{
	return (int32_t)(image->region->id - than->region->id) < 0;
}

struct image *registry_add_image(struct registry *registry, struct region *region)
{
	struct image *image = image_new(region, clock_now_ns());

	if (image && books_add_image(&registry->setup.intake->books, image) == 0) {
		image->heap = registry->setup.heap;
		return image;
	}
	image_free(image);
	return NULL;
}

size_t registry_take_claims(struct registry *registry)
{
	struct region_pool *pool = registry->setup.pool;
	struct region *region;
	size_t count = 0;

	while (pool && (region = region_pool_next(pool)) && registry_add_image(registry, region))
		count++;
	return count;
}

/* ---- ready */

/* At once, so that a program that is not to be recorded takes as few samples as possible. Its name and
 * command line are hostile. */
static void choose(struct registry *registry, struct image *image)
{
	char path[REGION_PATH_BYTES], line[REGION_COMMAND_LINE_BYTES];

	if (!registry->setup.choice)
		return;
	region_program_path(image->region, path);
	region_program_command_line(image->region, line);
	utf8_disarm(path, strlen(path)); /* an expression matches characters, not bytes */
	utf8_disarm(line, strlen(line));
	image->life.unchosen = !choice_takes(registry->setup.choice, path, line);
	if (image->life.unchosen)
		atomic_store(&region_header(image->region)->mode, REGION_MODE_OFF);
}

/* The image is counted here, with its reason, and so not once more for the process that executed it. */
static void note_declined(struct registry *registry, struct image *image, const char *why)
{
	const pid_t pid = (pid_t)region_header(image->region)->pid;
	struct process *process;

	image->life.declined = why;
	missed_note_declined(&registry->missed, why);
	if (pid == registry->setup.launch->pid)
		missed_note_command_declined(&registry->missed, why);
	for (size_t cursor = 0;
	     pid && (process = table_next(&registry->setup.intake->books.processes, (uint64_t)pid, &cursor));)
		if (!process->target.closed && registry_is_older(process->image, image))
			executed_note_declined(process, why);
}

static void become_ready(struct image *image, enum image_state state)
{
	image->life.state = state;
	image->life.trigger_address = region_header(image->region)->trigger_address;
}

size_t registry_find_ready(struct registry *registry)
{
	size_t count = 0;

	books_each_image (image, &registry->setup.intake->books) {
		if (image_is_ready(image))
			continue;
		const char *declined = region_declined_text(image->region);
		if (declined && !image->life.declined)
			note_declined(registry, image, declined);
		if (atomic_load_explicit(&region_header(image->region)->state, memory_order_acquire) !=
		    REGION_READY)
			continue;
		become_ready(image, IMAGE_READY);
		backend_fallback_expect(&registry->fallback, image);
		choose(registry, image);
		count++;
	}
	return count;
}

static bool find_images(void *context)
{
	struct registry *registry = context;

	registry_take_claims(registry);
	return registry_find_ready(registry) > 0;
}

void registry_begin_adoption(struct image *image)
{
	become_ready(image, IMAGE_ADOPTING);
}

void registry_settled(struct image *image)
{
	image->life.state = IMAGE_SETTLED;
}

/* ---- all images */

void registry_set_period(struct registry *registry, uint64_t period_bytes)
{
	if (registry->setup.pool)
		region_pool_set_period(registry->setup.pool, period_bytes);
	books_each_image (image, &registry->setup.intake->books)
		if (!image->period.bytes) /* else it has its own */
			region_set_period(region_header(image->region), period_bytes);
}

bool registry_empty(const struct registry *registry)
{
	return registry->setup.intake->books.images.count == 0;
}

void registry_remove_image(struct registry *registry, struct image *image)
{
	if (!image_is_ready(image) && !image->life.declined && !image->origin.offered)
		missed_note_incomplete(&registry->missed);
	unfollowed_end(image, &registry->setup.intake->births);
	books_remove_image(image);
	image_each_process (process, image)
		image_free_process(process);
	walked_free(image);
	image_free(image);
}

void registry_init(struct registry *registry)
{
	const struct registry_setup *setup = &registry->setup;

	registry->drain.round = 1;
	registry->fallback = (struct backend_fallback){
	    .probe = setup->probe, .verbosity = setup->verbosity, .may_yield = setup->may_yield};
	setup->intake->find_images = find_images;
	setup->intake->context = registry;
}

void registry_fini(struct registry *registry)
{
	books_each_image (image, &registry->setup.intake->books)
		registry_remove_image(registry, image);
}
