/* SPDX-License-Identifier: Apache-2.0 */
/*
 * For tests of the registry, after cmocka's headers: the sampler's side, and real shells under the real
 * library, which allocate, fork, execute other programs and end. Every allocation is a sample, copied by the
 * hook.
 */
#ifndef TESTS_UNIT_REGISTRY_SCENE_H
#define TESTS_UNIT_REGISTRY_SCENE_H

#include "pprof/text/clock.h"
#include "proto/region_pool.h"
#include "sampler/books/arrivals.h"
#include "sampler/books/drain.h"
#include "sampler/books/process_life.h"
#include "sampler/books/program_run.h"
#include "sampler/books/registry_look.h"
#include "sampler/intake/launch.h"
#include "tests/unit/stranger.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

#define SECOND_NS UINT64_C(1000000000)

enum { DEADLINE_S = 30, CLOSED_MAX = 16 };

/* The sampler's side, and what it was told. */
struct scene {
	struct modules *modules;
	struct memory_bound memory;
	struct probe probe;
	struct intake intake;
	struct region_pool *pool;
	struct registry registry;
	struct launch launch;
	struct closed {
		pid_t pid;
		enum target_end end;
		int status;
		uint64_t counted, taken;
		char title[64];
	} closed[CLOSED_MAX];
	size_t closed_count;
	struct process *held[CLOSED_MAX]; /* not released yet */
	bool hold;
	void (*meanwhile)(
	    struct scene *s);          /* what happens while the next process is looked at; NULL: nothing */
	void (*then)(struct scene *s); /* and while the one after it is */
	struct stranger late;
	struct process *loading;
};

static char library[PATH_MAX];

static inline int find_library(void **state)
{
	char path[PATH_MAX];
	const char *build = getenv("HEAPTAP_BUILD");

	(void)state;
	snprintf(path, sizeof(path), "%s/libheaptap.so", build ? build : "build");
	if (!realpath(path, library))
		library[0] = '\0';
	return 0;
}

static inline void on_watched(void *context, struct target *target)
{
	struct scene *s = context;

	assert_false(target->closed); /* nobody would tell its listener to forget it */
	if (s->meanwhile)
		s->meanwhile(s);
}

static inline void on_closed(void *context, struct target *target)
{
	struct process *process = (struct process *)target; /* which begins with it */
	struct scene *s = context;

	assert_true(s->closed_count < CLOSED_MAX);
	struct closed *closed = &s->closed[s->closed_count++];
	*closed = (struct closed){.pid = process->target.pid,
	    .end = process->target.end,
	    .status = process->target.status,
	    .counted = process_samples(process),
	    .taken = process->counters.taken};
	memcpy(closed->title, process->target.title, sizeof(closed->title));
	if (s->hold)
		s->held[s->closed_count - 1] = process;
	else
		process_life_release(&s->registry, process);
}

static inline int open_scene(void **state)
{
	const struct region_options options = {.period_bytes = 1,
	    .dump_bytes = 8192,
	    .clock_id = 1,
	    .live_max = 1 << 14,
	    .mode = REGION_MODE_COPY};
	struct scene *s = calloc(1, sizeof(*s));

	*state = s;
	s->modules = modules_new(64);
	s->probe = (struct probe){.backend = BACKEND_COPY};
	s->pool = region_pool_new(&options);
	if (!s->pool || intake_init(&s->intake, s->modules, &s->memory, 0, false) != 0)
		return -1;
	s->registry =
	    (struct registry){.setup = {.intake = &s->intake,
	                          .pool = s->pool,
	                          .probe = &s->probe,
	                          .modules = s->modules,
	                          .epoll_fd = epoll_create1(EPOLL_CLOEXEC),
	                          .verbosity = -1,
	                          .launch = &s->launch,
	                          .listener = {.watched = on_watched, .closed = on_closed, .context = s}}};
	registry_init(&s->registry);
	return 0;
}

static inline int close_scene(void **state)
{
	struct scene *s = *state;

	registry_fini(&s->registry);
	region_pool_free(s->pool);
	intake_fini(&s->intake);
	modules_free(s->modules);
	close(s->registry.setup.epoll_fd);
	free(s);
	return 0;
}

/* ---- targets */

static inline void be_a_shell(int fd, void *argument)
{
	dup2(fd, 0);
	dup2(fd, 1);
	setenv("LD_PRELOAD", library, 1);
	setenv(REGION_ENV, argument, 1);
	execl("/bin/sh", "sh", (char *)NULL);
}

static inline struct stranger start_shell(const struct scene *s)
{
	return stranger_start(be_a_shell, (void *)(uintptr_t)region_pool_env(s->pool));
}

/* Runs a line there, and waits for what it prints: a line. */
static inline long tell(const struct stranger *shell, const char *line)
{
	char answer[64] = "";
	struct pollfd ready = {.fd = shell->fd, .events = POLLIN};

	assert_int_equal(write(shell->fd, line, strlen(line)), strlen(line));
	assert_int_equal(poll(&ready, 1, STRANGER_DEADLINE_MS), 1);
	assert_true(read(shell->fd, answer, sizeof(answer) - 1) > 0);
	return atol(answer);
}

#define REQUIRE_LIBRARY()                                                                \
	do {                                                                             \
		if (!library[0]) {                                                       \
			print_message("no libheaptap.so in $HEAPTAP_BUILD: make all\n"); \
			skip();                                                          \
		}                                                                        \
	} while (0)

/* ---- looking until something is so */

static inline void look(struct scene *s)
{
	struct epoll_event event;
	int count = epoll_wait(s->registry.setup.epoll_fd, &event, 1, 2);

	registry_look_runs(&s->registry);
	drain_all(&s->registry);
	if (count > 0)
		registry_look_ended(&s->registry);
}

#define LOOK_UNTIL(s, condition)                                                         \
	for (uint64_t end_ns = clock_now_ns() + DEADLINE_S * SECOND_NS; !(condition);) { \
		look(s);                                                                 \
		assert_true(clock_now_ns() < end_ns);                                    \
	}

static inline struct program_run *newest(const struct scene *s)
{
	size_t left = SIZE_MAX;

	return table_before(&s->intake.books.runs, &left);
}

static inline const struct closed *closed_of(const struct scene *s, pid_t pid)
{
	for (size_t i = 0; i < s->closed_count; i++)
		if (s->closed[i].pid == pid)
			return &s->closed[i];
	return NULL;
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, open_scene, close_scene)

#endif
