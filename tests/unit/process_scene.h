/* SPDX-License-Identifier: Apache-2.0 */
/* For tests of processes, after cmocka's headers: an image, whose places the test fills in as the library
 * does. */
#ifndef TESTS_UNIT_PROCESS_SCENE_H
#define TESTS_UNIT_PROCESS_SCENE_H

#include "sampler/heap/books.h"
#include "sampler/heap/image.h"
#include "tests/unit/region_fixture.h"

#include <limits.h>
#include <stdlib.h>
#include <unistd.h>

enum { SEGMENTS = 2 };

/* One image whose places the test fills in. */
struct scene {
	struct modules *store;
	struct image *image;
	const struct region *region;
	struct books books;
	char exe[PATH_MAX];
};

static inline void some_code(void)
{
	__asm__ volatile("");
}

static inline int open_scene(void **state)
{
	struct scene *s = calloc(1, sizeof(*s));
	struct region *region = malloc(sizeof(*region));

	*state = s;
	s->store = modules_new(16);
	fixture_open(region, SEGMENTS * REGION_SEGMENT_SLOTS);
	s->image = image_new(region, 1);
	s->image->books = &s->books;
	s->region = region;
	s->image->life.state = IMAGE_READY;
	s->image->life.trigger_address = (uintptr_t)some_code; /* our forked strangers have it too */
	return readlink("/proc/self/exe", s->exe, sizeof(s->exe) - 1) < 0;
}

static inline int close_scene(void **state)
{
	struct scene *s = *state;

	for (uint32_t i = REGION_PLACES; i-- > 0;)
		if (s->image->places.at[i])
			image_free_process(s->image->places.at[i]);
	image_free(s->image);
	books_fini(&s->books);
	modules_free(s->store);
	free(s);
	return 0;
}

/* The library has claimed a place there, as it says. */
static inline struct process *claim(struct scene *s, uint32_t number, pid_t pid, uint32_t parent_word)
{
	struct region_place *place = region_place(s->region, number);

	place->pid = (uint32_t)pid;
	place->parent = parent_word;
	atomic_store(&place->state, PLACE_READY);
	return image_process(s->image, number, s->store);
}

/* One that is made anew. */
static inline struct process *claim_again(struct scene *s, pid_t pid)
{
	if (s->image->places.at[0])
		image_free_process(s->image->places.at[0]);
	struct process *process = claim(s, 0, pid, 0);
	assert_non_null(process);
	return process;
}

#endif
