/* SPDX-License-Identifier: Apache-2.0 */
/* For tests of processes, after cmocka's headers: a program run, whose places the test fills in as the
 * library does. */
#ifndef TESTS_UNIT_PROCESS_SCENE_H
#define TESTS_UNIT_PROCESS_SCENE_H

#include "sampler/books/books.h"
#include "sampler/books/program_run.h"
#include "tests/unit/region_fixture.h"

#include <limits.h>
#include <stdlib.h>
#include <unistd.h>

enum { SEGMENTS = 2 };

/* One program run whose places the test fills in. */
struct scene {
	struct modules *store;
	struct program_run *run;
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
	s->run = program_run_new(region, 1);
	s->run->books = &s->books;
	s->region = region;
	s->run->life.state = RUN_READY;
	s->run->life.trigger_address = (uintptr_t)some_code; /* our forked strangers have it too */
	return readlink("/proc/self/exe", s->exe, sizeof(s->exe) - 1) < 0;
}

static inline int close_scene(void **state)
{
	struct scene *s = *state;

	for (uint32_t i = REGION_PLACES; i-- > 0;)
		if (s->run->places.at[i])
			program_run_free_process(s->run->places.at[i]);
	program_run_free(s->run);
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
	return program_run_meet(s->run, number, s->store);
}

/* One that is made anew. */
static inline struct process *claim_again(struct scene *s, pid_t pid)
{
	if (s->run->places.at[0])
		program_run_free_process(s->run->places.at[0]);
	struct process *process = claim(s, 0, pid, 0);
	assert_non_null(process);
	return process;
}

#endif
