/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Who a place in a region is: real processes that map it, that do not, that have ended; numbers that lie;
 * what they had mapped by their own word; what children got from their parents.
 */
#include "sampler/heap/process.h"
#include "sampler/heap/executed.h"

#include <errno.h>
#include <limits.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <cmocka.h>

#include "sampler/linux/thread_facts.h"
#include "tests/unit/descriptors.h"
#include "tests/unit/region_fixture.h"
#include "tests/unit/stranger.h"

enum { SEGMENTS = 2 };

/* One image whose places the test fills in. */
struct scene {
	struct modules *store;
	struct image *image;
	const struct region *region;
	struct table processes; /* of the image, by pid */
	char exe[PATH_MAX];
};

static void some_code(void)
{
	__asm__ volatile("");
}

static int open_scene(void **state)
{
	struct scene *s = calloc(1, sizeof(*s));
	struct region *region = malloc(sizeof(*region));
	*state = s;
	s->store = modules_new(16);
	fixture_open(region, SEGMENTS * REGION_SEGMENT_SLOTS);
	s->image = image_new(region, 1);
	s->image->processes = &s->processes;
	s->region = region;
	s->image->ready = true;
	s->image->trigger_address = (uintptr_t)some_code; /* our forked strangers have it too */
	return readlink("/proc/self/exe", s->exe, sizeof(s->exe) - 1) < 0;
}

static int close_scene(void **state)
{
	struct scene *s = *state;
	for (uint32_t i = REGION_PLACES; i-- > 0;)
		if (s->image->process[i])
			process_free(s->image->process[i]);
	image_free(s->image);
	table_fini(&s->processes);
	modules_free(s->store);
	free(s);
	return 0;
}

/* The library has claimed a place there, as it says. */
static struct process *claim(struct scene *s, uint32_t number, pid_t pid, uint32_t parent_word)
{
	struct region_place *place = region_place(s->region, number);
	place->pid = (uint32_t)pid;
	place->parent = parent_word;
	atomic_store(&place->state, PLACE_READY);
	return image_process(s->image, number, s->store);
}

/* One that is made anew. */
static struct process *claim_again(struct scene *s, pid_t pid)
{
	if (s->image->process[0])
		process_free(s->image->process[0]);
	struct process *process = claim(s, 0, pid, 0);
	assert_non_null(process);
	return process;
}

static void forget_region(int fd, void *argument)
{
	const struct region *region = argument;
	char byte = (char)munmap(region->base, region->offsets.end);
	if (write(fd, &byte, 1) == 1)
		(void)!read(fd, &byte, 1);
}

static struct stranger stranger_without_region(const struct scene *s)
{
	char byte;
	struct stranger stranger = stranger_start(forget_region, (void *)(uintptr_t)s->region);
	assert_int_equal(read(stranger.fd, &byte, 1), 1);
	assert_int_equal(byte, 0);
	return stranger;
}

static void nobody_there(void **state)
{
	struct scene *s = *state;
	assert_null(image_process(s->image, 0, s->store));
	atomic_store(&region_place(s->region, 0)->state, PLACE_CLAIMED);
	assert_null(image_process(s->image, 0, s->store));
	atomic_store(&region_place(s->region, 0)->state, PLACE_DEAD);
	assert_null(image_process(s->image, 0, s->store));
	assert_null(image_process(s->image, REGION_PLACES, s->store));
	assert_null(image_process(s->image, UINT32_MAX, s->store));
	s->image->ready = false;
	assert_null(claim(s, 0, getpid(), 0));
	assert_int_equal(s->image->live_processes, 0);
}

static void who_maps_the_region_is_known(void **state)
{
	struct scene *s = *state;
	struct stranger stranger = stranger_start(NULL, NULL);
	struct process *process = claim(s, 0, stranger.pid, 0);
	assert_non_null(process);
	assert_int_equal(process->target.pid, stranger.pid);
	assert_true(process->target.pidfd >= 0);
	assert_true(process_is_there(process));
	assert_string_equal(process->target.name, s->exe);
	assert_string_equal(process->target.title, "process");
	const struct map *map = maps_find(process->target.maps, (uintptr_t)some_code);
	assert_non_null(map);
	assert_string_equal(map_path(map), s->exe);
	assert_ptr_equal(image_process(s->image, 0, s->store), process);
	assert_int_equal(s->image->live_processes, 1);
	stranger_end(&stranger);
	assert_false(process_is_there(process));
}

/* Nobody knows whether it lives, until there is a descriptor to look with. */
static void without_descriptors_it_is_unsure(void **state)
{
	struct scene *s = *state;
	struct stranger stranger = stranger_start(NULL, NULL);
	struct rlimit before = descriptors_take_away();
	struct process *process = claim(s, 0, stranger.pid, 0);
	bool unsure = process && process->unsure, found = process && process_look_again(process);
	descriptors_give_back(before);
	assert_non_null(process);
	assert_true(unsure && !found && process->unsure);
	assert_int_equal(process->target.pidfd, -1);
	assert_true(process_look_again(process));
	assert_false(process->unsure);
	assert_true(process->target.pidfd >= 0);
	assert_string_equal(process->target.name, s->exe);
	assert_non_null(maps_find(process->target.maps, (uintptr_t)some_code));
	assert_false(process_look_again(process));
	stranger_end(&stranger);
}

static void without_descriptors_nothing_is_known_to_be_executed(void **state)
{
	struct scene *s = *state;
	struct stranger stranger = stranger_start(NULL, NULL);
	struct process *process = claim(s, 0, stranger.pid, 0);
	executed_begin(process);
	assert_true(process->executable_known);
	ino_t ino = process->executable_ino;
	assert_int_not_equal(ino, 0);
	process->executable_ino = 0; /* as it is by PR_SET_MM_EXE_FILE */
	struct rlimit before = descriptors_take_away();
	executed_look(process, 1);
	bool there = process_is_there(process);
	descriptors_give_back(before);
	assert_true(there);
	assert_string_equal(process->target.unseen, "");
	executed_look(process, 1);
	assert_string_equal(process->target.unseen, ""); /* it still has our region mapped */
	assert_int_equal(process->executable_ino, ino);
	stranger_end(&stranger);
}

/* What a target writes there must not make us wait for somebody else's end, ours least of all. */
static void a_number_is_a_targets_word(void **state)
{
	struct scene *s = *state;
	struct region another; /* which the other does map */
	fixture_open(&another, 1);
	struct stranger other = stranger_without_region(s), ended = stranger_start(NULL, NULL);
	pid_t was = ended.pid, child = fork();
	if (child == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		pause();
		_exit(0);
	}
	stranger_end(&ended);
	const pid_t words[] = {getpid(), child, 1, other.pid, was, 0, -1, INT32_MAX};
	for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++) {
		const struct process *process = claim_again(s, words[i]);
		assert_int_equal(process->target.pidfd, -1);
		assert_false(process_is_there(process));
	}
	kill(child, SIGKILL);
	waitpid(child, NULL, 0);
	stranger_end(&other);
	region_close(&another);
}

static void count_from_one(int fd, void *unused)
{
	char byte;
	(void)unused;
	pid_t pid = unshare(CLONE_NEWPID) == 0 ? fork() : -1;
	if (pid != 0 && (pid < 0 || write(fd, &pid, sizeof(pid)) != (ssize_t)sizeof(pid)))
		_exit(write(fd, &pid, sizeof(pid)) < 0);
	(void)!read(fd, &byte, 1); /* both: the end of the socket ends them */
}

/* What the stranger says of the process in its namespace. */
static pid_t pid_or_skip(struct stranger *stranger)
{
	pid_t pid;
	assert_int_equal(read(stranger->fd, &pid, sizeof(pid)), sizeof(pid));
	if (pid >= 0)
		return pid;
	stranger_end(stranger);
	print_message("no pid namespace is available here\n");
	skip();
	return -1;
}

/* In a namespace of its own it has another number there than here. */
static void a_process_with_a_number_of_its_own_is_searched_for(void **state)
{
	struct scene *s = *state;
	struct stranger stranger = stranger_start(count_from_one, NULL);
	pid_t inner = pid_or_skip(&stranger);
	const struct process *process = claim(s, 0, 1, 0);
	assert_non_null(process);
	assert_int_equal(process->target.pid, inner);
	assert_true(process->target.pidfd >= 0);
	stranger_end(&stranger);
}

/* The first process of a namespace forks another for each byte, tells its number there, and ends the last. */
static void fork_in_a_namespace(int fd, void *unused)
{
	char byte;
	(void)unused;
	pid_t pid = unshare(CLONE_NEWPID) == 0 ? fork() : -1;
	if (pid > 0)
		_exit(waitpid(pid, NULL, 0) < 0);
	do {
		if (pid == 0 && (pid = fork()) == 0)
			pause(); /* it ends with its namespace, if not before */
		if (write(fd, &pid, sizeof(pid)) != (ssize_t)sizeof(pid))
			_exit(1);
		if (read(fd, &byte, 1) != 1)
			return;
		kill(pid, SIGKILL);
		waitpid(pid, NULL, 0);
		pid = 0;
	} while (true);
}

static void a_child_with_a_number_that_nobody_has_here_is_searched_for(void **state)
{
	struct scene *s = *state;
	struct stranger stranger = stranger_start(fork_in_a_namespace, NULL);
	pid_t inner = pid_or_skip(&stranger);
	while (kill(inner, 0) == 0 || errno != ESRCH) {
		assert_int_equal(write(stranger.fd, "", 1), 1);
		assert_int_equal(read(stranger.fd, &inner, sizeof(inner)), sizeof(inner));
	}
	const struct process *first = claim(s, 0, 1, 0), *child = claim(s, 1, inner, 1);
	assert_true(first->target.pidfd >= 0);
	assert_true(child->target.pidfd >= 0);
	const struct thread_facts facts = thread_facts_read(child->target.pid);
	assert_int_equal(facts.inner, inner);
	assert_int_equal(facts.parent, first->target.pid);
	stranger_end(&stranger);
}

/* A clone that the library did not hear of: it says its parent's number. */
static void a_clone_is_searched_for_among_the_children(void **state)
{
	struct scene *s = *state;
	struct stranger stranger = stranger_start(count_from_one, NULL);
	pid_t inner = pid_or_skip(&stranger);
	assert_int_equal(claim(s, 0, stranger.pid, 0)->target.pid, stranger.pid);
	const struct process *process = claim(s, 1, stranger.pid, 1);
	assert_int_equal(process->target.pid, inner);
	assert_true(process->target.pidfd >= 0);
	stranger_end(&stranger);
}

/* ---- what was mapped, by the image's word */

static unsigned char *put_module(unsigned char *at, uint64_t start, uint64_t pages, const char *path)
{
	struct region_module module = {.start = start,
	    .end = start + pages * REGION_PAGE_BYTES,
	    .file_offset = 4096,
	    .path_bytes = (uint32_t)strlen(path) + 1};
	module.total_bytes = (uint32_t)((sizeof(module) + module.path_bytes + 7) & ~(size_t)7);
	memcpy(at, &module, sizeof(module));
	memcpy(at + sizeof(module), path, module.path_bytes);
	return at + module.total_bytes;
}

static void of_a_process_that_is_gone_its_own_word_is_all_there_is(void **state)
{
	struct scene *s = *state;
	unsigned char *at = s->region->base + s->region->offsets.modules;
	at = put_module(at, 0x400000, 16, "/opt/server/bin/serve");
	put_module(at, 0x7f0000000000, 4, "/opt/server/lib/gone.so");
	const struct process *process = claim(s, 0, 0, 0);
	assert_string_equal(process->target.name, "/opt/server/bin/serve");
	assert_string_equal(process->target.title, "serve");
	assert_int_equal(maps_count(process->target.maps), 2);
	const struct map *map = maps_find(process->target.maps, 0x7f0000003fff);
	assert_non_null(map);
	assert_string_equal(map_path(map), "/opt/server/lib/gone.so");
	assert_int_equal(map->pgoff, 4096);
	assert_null(maps_find(process->target.maps, 0x7f0000004000));
}

static void what_makes_no_sense_there_ends_it(void **state)
{
	static const struct {
		size_t offset;
		uint32_t word;
	} lies[] = {{offsetof(struct region_module, total_bytes), 0},
	    {offsetof(struct region_module, total_bytes), UINT32_MAX},
	    {offsetof(struct region_module, total_bytes), REGION_MODULES_BYTES},
	    {offsetof(struct region_module, total_bytes), sizeof(struct region_module)},
	    {offsetof(struct region_module, path_bytes), 0},
	    {offsetof(struct region_module, path_bytes), UINT32_MAX},
	    {offsetof(struct region_module, path_bytes), REGION_PATH_BYTES + 1},
	    {offsetof(struct region_module, end), 0x10}};
	struct scene *s = *state;
	unsigned char *at = s->region->base + s->region->offsets.modules;
	for (size_t i = 0; i < sizeof(lies) / sizeof(lies[0]); i++) {
		unsigned char *second = put_module(at, 0x400000, 16, "/first"),
		              *third = put_module(second, 0x800000, 16, "/second");
		put_module(third, 0xc00000, 16, "/third");
		memcpy(second + lies[i].offset, &lies[i].word, sizeof(lies[i].word));
		assert_int_equal(maps_count(claim_again(s, 0)->target.maps), 1);
	}
	/* All of it at random, and of nothing but modules. */
	uint64_t random = 88172645463325252u;
	for (size_t n = 0; n < 50; n++) {
		for (size_t i = 0; i < REGION_MODULES_BYTES; i += 8) {
			random ^= random << 13;
			random ^= random >> 7;
			random ^= random << 17;
			uint64_t word = n % 2 ? random : random & 0x0000007f0000007f;
			memcpy(at + i, &word, 8);
		}
		const struct process *process = claim_again(s, 0);
		assert_true(memchr(process->target.name, '\0', sizeof(process->target.name)) != NULL);
		assert_true(memchr(process->target.title, '\0', sizeof(process->target.title)) != NULL);
	}
}

/* ---- parents and children */

static void a_child_that_is_gone_has_its_parents_maps_and_name(void **state)
{
	struct scene *s = *state;
	struct stranger stranger = stranger_start(NULL, NULL);
	const struct process *parent = claim(s, 0, stranger.pid, 0), *child = claim(s, 3, 0, 1);
	assert_int_equal(child->target.pidfd, -1);
	assert_string_equal(child->target.name, parent->target.name);
	assert_int_equal(maps_count(child->target.maps), maps_count(parent->target.maps));
	stranger_end(&stranger);
}

static void a_parent_that_cannot_be(void **state)
{
	struct scene *s = *state;
	const uint32_t words[] = {4, 9, REGION_PLACES, REGION_PLACES + 1, UINT32_MAX};
	for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++) {
		struct process *process = claim(s, 3, 0, words[i]);
		assert_non_null(process);
		assert_int_equal(maps_count(process->target.maps), 0);
		process_inherit(process);
		process_free(process);
	}
}

static uint32_t enter(struct process *process, uint32_t slot, uint64_t seq, uint64_t pc)
{
	const struct unwind_frame frame = {.pc = pc, .vaddr = pc, .kind = MAP_KIND_SPECIAL};
	uint32_t stack = stacks_intern(process->target.stacks, &frame, 1, NULL, process->target.maps);
	const struct heap_sample sample = {
	    .slot = slot, .seq = seq, .stack = stack, .tid = 5, .size_bytes = 64, .period_bytes = 1};
	assert_int_equal(heap_add(process->heap, &sample), 0);
	return stack;
}

static void inherit_slot(struct scene *s, uint32_t number, uint64_t seq, uint32_t slot, uint64_t parent_seq)
{
	fixture_live(s->region, number,
	    &(const struct fixture_block){.seq = seq, .size_bytes = 64, .flags = SLOT_INHERITED});
	fixture_slot(s->region, number)->origin_place = 0;
	fixture_slot(s->region, number)->sample.slot = slot;
	fixture_slot(s->region, number)->sample.seq = parent_seq;
}

static uint64_t pc_of(const struct process *process, uint32_t slot, uint64_t seq)
{
	uint32_t site = heap_site_of(process->heap, slot, seq);
	if (site == HEAP_NO_SITE)
		return 0;
	uint32_t stack = heap_site(process->heap, site)->key.stack;
	return stacks_frame(process->target.stacks, stacks_node(process->target.stacks, stack)->frame)->pc;
}

static void inherited_blocks_keep_their_stacks(void **state)
{
	enum { FIRST = REGION_SEGMENT_SLOTS }; /* of the child's slots */
	struct scene *s = *state;
	fixture_own(s->region, 0, 0);
	fixture_own(s->region, 1, 3);
	struct process *parent = claim(s, 0, 0, 0);
	enter(parent, 0, 10, 0x1111);
	inherit_slot(s, FIRST, 1, 0, 10);
	inherit_slot(s, FIRST + 1, 2, 1, 11);          /* its stack has not come yet */
	inherit_slot(s, FIRST + 2, 3, UINT32_MAX, 12); /* hostile */
	inherit_slot(s, FIRST + 3, 4, 0, 10);          /* of another place, it says */
	fixture_slot(s->region, FIRST + 3)->origin_place = 77;
	fixture_live(s->region, FIRST + 4, &(const struct fixture_block){.seq = 5, .size_bytes = 64});
	struct process *child = claim(s, 3, 0, 1);
	enter(child, FIRST + 4, 5, 0x3333);
	assert_int_equal(pc_of(child, FIRST, 1), 0x1111);
	assert_int_equal(pc_of(child, FIRST + 1, 2), 0);
	enter(parent, 1, 11, 0x2222);
	process_inherit(child);
	assert_int_equal(pc_of(child, FIRST, 1), 0x1111);
	assert_int_equal(pc_of(child, FIRST + 1, 2), 0x2222);
	assert_int_equal(pc_of(child, FIRST + 2, 3), 0);
	assert_int_equal(pc_of(child, FIRST + 3, 4), 0);
	assert_int_equal(pc_of(child, FIRST + 4, 5), 0x3333);
	/* They were allocated by the parent. */
	assert_int_equal(heap_total(child->heap).samples, 1);
	assert_int_equal(heap_total(parent->heap).samples, 2);
}

static pid_t origin_of(const struct process *process, uint32_t slot, uint64_t seq)
{
	uint32_t site = heap_site_of(process->heap, slot, seq);
	assert_int_not_equal(site, HEAP_NO_SITE);
	return process_origin_pid(process, heap_site(process->heap, site)->key.origin);
}

/* A child, a grandchild, and what each of them has sampled itself. */
static void inherited_blocks_keep_their_origin(void **state)
{
	enum { CHILD = REGION_SEGMENT_SLOTS / 4, GRANDCHILD = CHILD * 2 };
	struct scene *s = *state;
	fixture_own(s->region, 0, 0);
	fixture_own(s->region, 1, 3);
	struct process *parent = claim(s, 0, 0, 0);
	parent->target.pid = 100;
	enter(parent, 0, 10, 0x1111);
	inherit_slot(s, REGION_SEGMENT_SLOTS, 1, 0, 10);
	struct process *child = claim(s, 3, 0, 1);
	child->target.pid = 103;
	enter(child, REGION_SEGMENT_SLOTS + CHILD, 2, 0x1111);
	assert_int_equal(origin_of(parent, 0, 10), 100);
	assert_int_equal(origin_of(child, REGION_SEGMENT_SLOTS, 1), 100);
	assert_int_equal(origin_of(child, REGION_SEGMENT_SLOTS + CHILD, 2), 103);
	/* The same stack, but two sites: their errors have nothing in common. */
	assert_int_not_equal(heap_site_of(child->heap, REGION_SEGMENT_SLOTS, 1),
	    heap_site_of(child->heap, REGION_SEGMENT_SLOTS + CHILD, 2));
	/* Of a block without a stack it is certain as long as there is one ancestor. */
	assert_int_equal(process_origin_pid(child, HEAP_ORIGIN_UNKNOWN), 100);

	fixture_own(s->region, 0, 5);
	inherit_slot(s, GRANDCHILD, 1, REGION_SEGMENT_SLOTS, 1);
	inherit_slot(s, GRANDCHILD + 1, 2, REGION_SEGMENT_SLOTS + CHILD, 2);
	fixture_slot(s->region, GRANDCHILD)->origin_place = 3;
	fixture_slot(s->region, GRANDCHILD + 1)->origin_place = 3;
	struct process *grandchild = claim(s, 5, 0, 4);
	assert_int_equal(grandchild->ancestor_count, 2);
	assert_int_equal(origin_of(grandchild, GRANDCHILD, 1), 100);
	assert_int_equal(origin_of(grandchild, GRANDCHILD + 1, 2), 103);
	assert_int_equal(process_origin_pid(grandchild, HEAP_ORIGIN_UNKNOWN), 0);
}

/* No list of ancestors has an end: what is further away is nobody's known origin, and never another's. */
static void a_long_chain_has_unknown_origins(void **state)
{
	struct scene *s = *state;
	struct process *process = claim(s, 0, 0, 0);
	process->target.pid = 1000;
	for (uint32_t i = 1; i < PROCESS_ANCESTORS + 5; i++) {
		process = claim(s, i, 0, i);
		process->target.pid = (pid_t)(1000 + i);
		assert_int_equal(process->ancestor_count, i < PROCESS_ANCESTORS ? i : PROCESS_ANCESTORS);
		assert_int_equal(process_origin_pid(process, 1), 1000);
	}
	assert_int_equal(process_origin_pid(process, PROCESS_ANCESTORS + 1), 0);
}

/* Its parent has ended, and another child has that place, and blocks of the same numbers. */
static void whoever_has_the_parents_place_is_not_the_parent(void **state)
{
	enum { FIRST = REGION_SEGMENT_SLOTS };
	struct scene *s = *state;
	fixture_own(s->region, 1, 3);
	claim(s, 0, 0, 0);
	struct process *parent = claim(s, 2, 0, 1);
	inherit_slot(s, FIRST, 1, 0, 10);
	fixture_slot(s->region, FIRST)->origin_place = 2;
	inherit_slot(s, FIRST + 1, 2, 1, 11);
	fixture_slot(s->region, FIRST + 1)->origin_place = 2;
	enter(parent, 0, 10, 0x1111);
	struct process *child = claim(s, 3, 0, 3);
	process_free(parent);
	struct process *other = claim(s, 2, 0, 1);
	enter(other, 1, 11, 0x2222);
	process_inherit(child);
	assert_int_equal(pc_of(child, FIRST, 1), 0x1111);
	assert_int_equal(pc_of(child, FIRST + 1, 2), 0); /* its stack is lost */
}

static void what_an_earlier_sampler_counted_stands_under_one_mark(void **state)
{
	struct scene *s = *state;
	fixture_own(s->region, 0, 0);
	for (uint32_t i = 0; i < 5; i++)
		fixture_live(s->region, i, &(const struct fixture_block){.seq = i, .size_bytes = 100});
	fixture_freed(s->region, 4, 5);
	fixture_count(s->region, 0, 5, 500);
	struct process *process = claim(s, 0, 0, 0);
	assert_int_equal(process_samples(process), 5);
	process_begin_adoption(process);
	process_adopt(process);
	assert_int_equal(process->counters.before_restart, 5);
	assert_int_equal(heap_total(process->heap).samples, 5);
	assert_int_equal(heap_total(process->heap).bytes_q8, 500 << WEIGHT_BYTES_SHIFT);
	for (uint32_t i = 0; i < 4; i++) {
		uint32_t site = heap_site_of(process->heap, i, i);
		assert_int_not_equal(site, HEAP_NO_SITE);
		uint32_t stack = heap_site(process->heap, site)->key.stack;
		const struct stack_frame *frame =
		    stacks_frame(process->target.stacks, stacks_node(process->target.stacks, stack)->frame);
		assert_string_equal(frame->marker, STACK_BEFORE_RESTART);
	}
	assert_int_equal(heap_site_of(process->heap, 4, 4), HEAP_NO_SITE);
	/* What comes now has a stack of its own, and is counted on top. */
	enter(process, 4, 6, 0x4444);
	assert_int_equal(heap_total(process->heap).samples, 6);
	assert_int_equal(pc_of(process, 4, 6), 0x4444);
}

static void maps_are_read_again_when_they_are_old(void **state)
{
	struct scene *s = *state;
	struct stranger stranger = stranger_start(NULL, NULL);
	struct process *process = claim(s, 0, stranger.pid, 0);
	uint64_t read_ns = process->target.maps_read_ns;
	assert_int_not_equal(read_ns, 0);
	const struct maps *before = process->target.maps;
	target_read_maps(&process->target, read_ns + 99, 100);
	assert_int_equal(process->target.maps_read_ns, read_ns);
	assert_ptr_equal(process->target.maps, before);
	maps_clear(process->target.maps);
	target_read_maps(&process->target, read_ns + 100, 100);
	assert_int_equal(process->target.maps_read_ns, read_ns + 100);
	assert_non_null(maps_find(process->target.maps, (uintptr_t)some_code));
	stranger_end(&stranger);
	/* Ended: what is known stays. */
	target_read_maps(&process->target, read_ns + 1000, 100);
	assert_non_null(maps_find(process->target.maps, (uintptr_t)some_code));
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, open_scene, close_scene)
	const struct CMUnitTest tests[] = {
	    TEST(nobody_there),
	    TEST(who_maps_the_region_is_known),
	    TEST(without_descriptors_it_is_unsure),
	    TEST(without_descriptors_nothing_is_known_to_be_executed),
	    TEST(a_number_is_a_targets_word),
	    TEST(a_process_with_a_number_of_its_own_is_searched_for),
	    TEST(a_child_with_a_number_that_nobody_has_here_is_searched_for),
	    TEST(a_clone_is_searched_for_among_the_children),
	    TEST(of_a_process_that_is_gone_its_own_word_is_all_there_is),
	    TEST(what_makes_no_sense_there_ends_it),
	    TEST(a_child_that_is_gone_has_its_parents_maps_and_name),
	    TEST(a_parent_that_cannot_be),
	    TEST(inherited_blocks_keep_their_stacks),
	    TEST(inherited_blocks_keep_their_origin),
	    TEST(a_long_chain_has_unknown_origins),
	    TEST(whoever_has_the_parents_place_is_not_the_parent),
	    TEST(what_an_earlier_sampler_counted_stands_under_one_mark),
	    TEST(maps_are_read_again_when_they_are_old),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
