/* SPDX-License-Identifier: Apache-2.0 */
#include "sampler/books/walked.h"

#include "pprof/table/array.h"
#include "pprof/text/clock.h"
#include "sampler/books/walk_rows.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum {
	IN_OWN = 1 << 30,
	ASK_AGAIN_NS = 100 * 1000000, /* between two looks for dumps that are missing */
	RENEW_NS =
	    100 * 1000000, /* between readings of the maps, of a program that calls dlclose all the time */
};

_Static_assert((uint32_t)STACKS_NODES_MAX <= (uint32_t)IN_OWN, "a stack's number does not reach that bit");

struct walked {
	struct walk_rows rows;
	/* The stacks of numbers. `own` is the table of the program run's own process, which finds most of
	 * them. `others` has copies of the stacks that its children have found, whose tables end with them.
	 * NULL: empty. */
	struct stacks *own, *others;
	/* by number: the stack in `others`, or in `own` plus IN_OWN; UINT32_MAX if it is not known */
	uint32_t *stack_of;
	size_t stack_room;
	uint64_t later_since_ns; /* the rows of later files come from samples that were taken after this */
	struct walked_counters counters;
};

static struct walked *open_walked(struct program_run *run)
{
	if (run->walked.state || !run->region->walks)
		return run->walked.state;
	struct walked *walked = calloc(1, sizeof(*walked));
	if (!walked)
		return NULL;
	walk_rows_open(&walked->rows, run->region);
	return run->walked.state = walked;
}

void walked_begin(struct program_run *run)
{
	(void)open_walked(run);
}

void walked_free(struct program_run *run)
{
	struct walked *walked = run->walked.state;

	if (!walked)
		return;
	walk_rows_close(&walked->rows);
	stacks_unref(walked->own);
	stacks_unref(walked->others);
	free(walked->stack_of);
	free(walked);
	run->walked.state = NULL;
	if (run->memory)
		memory_share_note(&run->walked.share, run->memory, 0);
}

uint32_t walked_interval(uint64_t one_in)
{
	enum { COMPARED = 256, COMPARED_MOST = 1 << 30 };
	uint32_t interval = 1;

	if (!one_in)
		return COMPARED;
	while (interval < one_in && interval < COMPARED_MOST)
		interval *= 2;
	return interval;
}

/* ---- numbers */

static bool is_named(const struct walked *walked, uint32_t number)
{
	return number < walked->stack_room && walked->stack_of[number] != UINT32_MAX;
}

/* The stack of the process as an entry of stack_of, or UINT32_MAX if memory is short. */
static uint32_t keep(struct walked *walked, const struct process *process, uint32_t stack)
{
	struct stacks *stacks = process->target.stacks;

	if (process->place == 0 && !walked->own)
		walked->own = stacks_ref(stacks);
	if (walked->own == stacks)
		return stack | IN_OWN;
	if (!walked->others && !(walked->others = stacks_new()))
		return UINT32_MAX;
	return stacks_translate(stacks, stack, walked->others);
}

/* From now on samples of that number have that stack of the process. Returns 0 or -ENOMEM. */
static int name(struct walked *walked, const struct process *process, uint32_t number, uint32_t stack)
{
	size_t room = walked->stack_room;

	if (stack == UINT32_MAX ||
	    array_reserve(&walked->stack_of, &walked->stack_room, number + 1, sizeof(uint32_t)) != 0)
		return -ENOMEM;
	for (size_t i = room; i < walked->stack_room; i++)
		walked->stack_of[i] = UINT32_MAX;
	walked->stack_of[number] = keep(walked, process, stack);
	return is_named(walked, number) ? 0 : -ENOMEM;
}

/* The table of the program run's own process is weighed with that process. */
static void weigh(struct program_run *run)
{
	const struct walked *walked = run->walked.state;
	struct memory_share *share = &run->walked.share;

	for (uint32_t i = 0; !share->account && i < run->places.end; i++)
		if (run->places.at[i])
			memory_share_belongs(share, run->memory, run->places.at[i]->share.account);
	if (run->memory)
		memory_share_note(&run->walked.share, run->memory,
		    sizeof(*walked) + walked->stack_room * sizeof(*walked->stack_of) +
		        (walked->others ? stacks_bytes(walked->others) : 0));
}

static bool may_be_later(const struct walked *walked, const struct process *process, uint64_t time_ns)
{
	return process->place == 0 && !walked->rows.no_later_files && time_ns > walked->later_since_ns &&
	    walk_table_takes_later(&walked->rows.table);
}

void walked_learn(struct process *process, const struct walk_result *walk, uint32_t stack, uint64_t time_ns)
{
	struct walked *walked = open_walked(process->run);

	if (!walked || process->place >= WALK_PLACES)
		return;
	const struct walk_rows_stack published =
	    walk_rows_publish(&walked->rows, walk, may_be_later(walked, process, time_ns));
	uint32_t number = published.hash ? walk_table_number(&walked->rows.table, published.hash) : 0;
	if (number && !is_named(walked, number) && name(walked, process, number, stack) == 0)
		walk_table_tell(&walked->rows.table, number, WALK_NUMBER_KNOWN);
	weigh(process->run);
}

bool walked_is_ours(const struct process *process, uint32_t number)
{
	const struct walked *walked = process->run->walked.state;

	return walked && process->place < WALK_PLACES && walk_table_is_ours(&walked->rows.table, number);
}

/* ---- comparing */

/* The stack of a number in the process' own table; UINT32_MAX if it is unknown, or memory is short. */
static uint32_t stack_in(struct process *process, uint32_t number)
{
	const struct walked *walked = process->run->walked.state;
	struct process_walked *mine = &process->walked;
	size_t room = mine->stack_room;

	if (!is_named(walked, number) ||
	    array_reserve(&mine->stack, &mine->stack_room, number + 1, sizeof(*mine->stack)) != 0)
		return UINT32_MAX;
	memset(mine->stack + room, 0, (mine->stack_room - room) * sizeof(*mine->stack));
	if (!mine->stack[number]) {
		const uint32_t kept = walked->stack_of[number];
		const uint32_t stack = stacks_translate(kept & IN_OWN ? walked->own : walked->others,
		    kept & ~(uint32_t)IN_OWN, process->target.stacks);

		if (stack == UINT32_MAX)
			return UINT32_MAX;
		mine->stack[number] = stack + 1;
		stack_log_walked(&process->log, number, stack);
	}
	return mine->stack[number] - 1;
}

/* Compares another dump of a known stack. */
static void compare(struct process *process, const struct walk_result *walk, uint32_t number, uint32_t stack)
{
	struct walked *walked = process->run->walked.state;

	/* A dump that ends early, since it does not hold more of the stack, proves nothing. */
	if (stack == UINT32_MAX || walk->outcome != UNWIND_COMPLETE)
		return;
	uint32_t same = stack_in(process, number);
	if (same == UINT32_MAX)
		return;
	walked->counters.compared++;
	if (same == stack)
		return;
	walked->counters.different++;
	/* The innermost frames are equal. The row of the last equal frame led to another caller. */
	const struct stacks *stacks = process->target.stacks;
	size_t depth = 0, alike = 0, own = 0;
	uint32_t *path = NULL;
	size_t room = 0;
	for (uint32_t at = same; at != STACK_ROOT; at = stacks_node(stacks, at)->outer, depth++)
		if (array_reserve(&path, &room, depth + 1, sizeof(*path)) == 0)
			path[depth] = stacks_node(stacks, at)->frame;
	while (own < walk->count && walk->frames[own].module == walk->frames[0].module)
		own++;
	while (path && alike < depth && own + alike < walk->count &&
	    stacks_frame(stacks, path[alike])->pc == walk->frames[own + alike].pc)
		alike++;
	free(path);
	walk_rows_ban(&walked->rows, process->run->region,
	    alike ? walk->frames[own + alike - 1].module : walk->frames[0].module);
}

/* Takes the first dump of a stack that the hook has numbered: from now on all samples of that number have
 * the stack of this dump, even if the dump is not whole. But then the number is not used any more, nor if
 * a hook would walk the stack differently now. A hash does not tell which row was wrong, so if one was, no
 * stack is walked any more. */
static int introduce(struct process *process, const struct dumped_walk *dumped)
{
	struct walked *walked = process->run->walked.state;
	const struct walk_rows_stack published =
	    walk_rows_publish(&walked->rows, dumped->walk, may_be_later(walked, process, dumped->time_ns));
	const bool same =
	    published.hash && published.hash == walk_table_hash(&walked->rows.table, dumped->number);
	int error = name(walked, process, dumped->number, dumped->stack);

	weigh(process->run);
	if (error)
		return error;
	walk_table_tell(&walked->rows.table, dumped->number, same ? WALK_NUMBER_KNOWN : WALK_NUMBER_UNUSED);
	walked->counters.compared += published.hash && !published.later;
	/* The rows of a later file may have been renewed since. */
	if (published.hash && !published.later && !same) {
		walked->counters.different++;
		walk_rows_ban(&walked->rows, process->run->region, NULL);
	}
	return 0;
}

int walked_dumped(struct process *process, const struct dumped_walk *dumped)
{
	if (!is_named(process->run->walked.state, dumped->number))
		return introduce(process, dumped);
	compare(process, dumped->walk, dumped->number, dumped->stack);
	return 0;
}

/* A target may give any frames as often as it likes: they become a stack only after their hash was found
 * to be the number's. If rows or files have changed since, another sample is asked for. */
int walked_told(struct process *process, const struct walk_result *walk, uint32_t number, uint64_t time_ns)
{
	struct walked *walked = process->run->walked.state;

	if (is_named(walked, number))
		return 0;
	const struct walk_rows_stack published =
	    walk_rows_publish(&walked->rows, walk, may_be_later(walked, process, time_ns));
	if (!published.hash || published.hash != walk_table_hash(&walked->rows.table, number))
		return 0;
	int error = name(walked, process, number, walk_intern(&process->target, walk));
	weigh(process->run);
	if (error)
		return error;
	walk_table_tell(&walked->rows.table, number, WALK_NUMBER_KNOWN);
	walked->counters.by_frames++;
	return 0;
}

struct walked_counters walked_counters(const struct program_run *run)
{
	return run->walked.state ? run->walked.state->counters : (struct walked_counters){0};
}

/* ---- counts */

struct draining {
	struct process *process;
	size_t samples;
};

static void refuse(struct process *process, uint64_t samples)
{
	process->counters.no_room += samples;
	if (process->run->memory)
		process->run->memory->refused += samples;
}

/* False if the stack of the number is not known yet. */
static bool enter_count(void *context, uint32_t number, struct tally now)
{
	struct draining *d = context;
	struct process *process = d->process;
	struct process_walked *mine = &process->walked;
	size_t room = mine->seen_room;

	if (array_reserve(&mine->seen, &mine->seen_room, number + 1, sizeof(*mine->seen)) != 0)
		return false;
	memset(mine->seen + room, 0, (mine->seen_room - room) * sizeof(*mine->seen));
	const struct tally more = tally_excess(&now, &mine->seen[number]);
	if (!is_named(process->run->walked.state, number)) {
		process->counters.not_dumped += more.samples;
		return false;
	}
	mine->seen[number] = now;
	process_look_for_room(process);
	uint32_t stack = stack_in(process, number);
	if (stack == UINT32_MAX || heap_add_walked(process->heap, number, stack, more) != 0)
		refuse(process, more.samples);
	else
		heap_note_period(process->heap, process->run->period.bytes);
	process_weigh(process);
	process->counters.taken += more.samples;
	process->counters.walked += more.samples;
	d->samples += more.samples;
	return true;
}

/* Asks again for missing dumps. A dump that was made before the last drain began has been read in this
 * drain, unless it is lost. (If it is only late, there are two.) */
static void ask_again(struct walked *walked, struct process_walked_waiting *waiting)
{
	const uint64_t now_ns = clock_now_ns();

	if (now_ns - waiting->asked_ns < ASK_AGAIN_NS)
		return;
	waiting->asked_ns = now_ns;
	for (uint32_t word = 0; word < WALK_DRAIN_WORDS; word++) {
		for (uint64_t bits = waiting->now[word] & waiting->before[word]; bits; bits &= bits - 1)
			walk_table_ask_again(
			    &walked->rows.table, word * 64 + (uint32_t)__builtin_ctzll(bits));
		waiting->before[word] = waiting->now[word];
	}
}

/* Returns the number of samples. */
static size_t drain_place(struct walked *walked, struct process *process)
{
	struct process_walked *mine = &process->walked;
	const struct region_place *place = region_place(process->run->region, process->place);
	uint64_t now = atomic_load_explicit(&place->walked, memory_order_acquire);

	if (now == mine->samples_seen && !(mine->waiting && mine->waiting->any))
		return 0;
	if (!mine->waiting && !(mine->waiting = calloc(1, sizeof(*mine->waiting))))
		return 0;
	mine->samples_seen = now;
	process->counters.not_dumped = 0;
	struct draining draining = {.process = process};
	const struct walk_drain drain = {
	    .place = process->place,
	    .left = mine->waiting->now,
	    .changed = enter_count,
	    .context = &draining,
	};
	mine->waiting->any = walk_table_drain(&walked->rows.table, &drain);
	if (mine->waiting->any)
		ask_again(walked, mine->waiting);
	return draining.samples;
}

/* Whether the maps may be read again. A target can call dlclose all the time. */
static bool may_read_maps(struct target *target)
{
	return target_maps_allowed(target, clock_now_ns());
}

/* Files may have been unmapped. Their rows are void already; the maps are out of date unless the kernel's
 * records keep them. */
static void renew_later(struct walked *walked, struct program_run *run, bool maps_follow)
{
	uint64_t generation, again;
	struct process *process = run->places.at[0];

	if (!walk_table_is_stale(&walked->rows.table, &generation) || !process || process->target.closed ||
	    clock_now_ns() - walked->later_since_ns < RENEW_NS ||
	    (!maps_follow && !may_read_maps(&process->target)))
		return;
	walk_table_clear_later(&walked->rows.table);
	if (!maps_follow)
		target_read_maps(&process->target, clock_now_ns(), 0);
	walked->later_since_ns = clock_now_ns();
	if (walk_table_is_stale(&walked->rows.table, &again) && again == generation)
		walk_table_renew(&walked->rows.table, generation);
}

size_t walked_drain(struct program_run *run, bool maps_follow)
{
	size_t samples = 0;
	struct walked *walked = run->walked.state;

	if (!walked)
		return 0;
	renew_later(walked, run, maps_follow);
	program_run_each_process(process, run) if (process->place < WALK_PLACES && !process->target.closed)
	    samples += drain_place(walked, process);
	return samples;
}
