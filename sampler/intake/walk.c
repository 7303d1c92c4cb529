/* SPDX-License-Identifier: Apache-2.0 */
#include "sampler/intake/walk.h"

#include "pprof/text/clock.h"
#include "sampler/unwind/go_switch.h"

enum { PROMPT_READS = 10 }; /* extra readings of the maps in a second */

/* How old the maps must be to be read again. Without records there is no other way to learn of a new
 * library. A stack that was copied after the last reading does not wait (a few times a second), since the
 * library may be unloaded soon. */
static uint64_t retry_ns(struct target *target, const struct walk_sample *sample, uint64_t now_ns)
{
	static const struct throttle_rate prompt = {
	    .burst = PROMPT_READS, .units = PROMPT_READS, .step_ns = CLOCK_NS_PER_S};

	if (!target_maps_allowed(target, now_ns))
		return UINT64_MAX;
	if (sample->maps_follow)
		return target->reading.retry_ns;
	/* A library was unmapped since: these maps are of no use. */
	if (target->past.source.place && target->past.read_at != sample->unmaps)
		return 0;
	if (sample->time_ns <= target->reading.read_ns ||
	    !throttle_take(&target->reading.prompt, &prompt, now_ns))
		return maps_retry_ns(0, false);
	return 0;
}

static enum unwind_outcome unwind(const struct target *target, struct maps *maps,
    const struct walk_sample *sample, struct unwind_frame *frames, size_t *count)
{
	const struct regs_arch *arch = regs_arch_native();
	const struct unwind_input input = {
	    .arch = arch,
	    .regs = sample->regs,
	    .maps = maps,
	    .stack_address = sample->regs->r[arch->sp],
	    .stack = sample->stack,
	    .stack_bytes = sample->stack_bytes,
	    .stack_want = sample->stack_want,
	    .reaches_end = sample->reaches_end,
	};

	if (!maps)
		return UNWIND_NO_MAP;
	/* All maps of a process share one budget. */
	struct throttle *budget = maps_cfi_work(target->maps), *own = maps_cfi_work(maps);
	if (own != budget)
		*own = *budget;
	maps_set_jit_rows(maps, target->generated.rows);
	const enum unwind_outcome outcome = unwind_stack(&input, frames, UNWIND_FRAMES_MAX, count);
	if (own != budget)
		*budget = *own;
	return outcome;
}

struct maps *walk_maps(struct target *target, bool maps_follow, uint64_t unmaps)
{
	return maps_follow ? target->maps : target_maps_at(target, unmaps);
}

/* The result has the maps by which the stack was unwound. */
static enum unwind_outcome walk(struct target *target, const struct walk_sample *sample,
    struct unwind_frame *frames, size_t *count, struct maps **maps)
{
	if (!sample->maps_follow)
		target_look_at_maps(target, clock_now_ns());
	*maps = walk_maps(target, sample->maps_follow, sample->unmaps);
	enum unwind_outcome outcome = unwind(target, *maps, sample, frames, count);
	/* Maps of a time that is over cannot be read any more. */
	if (!unwind_wants_maps(outcome) ||
	    (!sample->maps_follow && target->past.source.place && target_unmaps(target) != sample->unmaps))
		return outcome;
	uint64_t now_ns = clock_now_ns();
	if (!target_read_maps(target, now_ns, retry_ns(target, sample, now_ns)))
		return outcome;
	*maps = walk_maps(target, sample->maps_follow, sample->unmaps);
	outcome = unwind(target, *maps, sample, frames, count);
	target->reading.retry_ns = maps_retry_ns(target->reading.retry_ns, !unwind_wants_maps(outcome));
	return outcome;
}

/* The frames of a stack that only few stacks have. */
struct rarities {
	bool guess, generated;
};

static struct rarities look_for_rarities(const struct unwind_frame *frames, size_t count)
{
	struct rarities found = {0};

	for (size_t i = 0; i < count; i++) {
		found.guess |= frames[i].step == UNWIND_STEP_FP;
		found.generated |= frames[i].kind == MAP_KIND_ANON;
	}
	return found;
}

/* How many of the innermost frames are the preloaded library's. */
static size_t own_frames(const struct unwind_frame *frames, size_t count)
{
	size_t own = 0;

	while (own < count && frames[own].module && frames[own].module == frames->module)
		own++;
	return own;
}

/* The first of the frames from `from` on whose callers are on a goroutine's stack; 0: none is. */
static size_t find_go_switch(struct maps *maps, const struct unwind_frame *frames, size_t from, size_t count)
{
	struct go_switch found;

	for (size_t i = from; i < count; i++)
		if (go_switch_at(maps, frames[i].pc + 1, &found))
			return i;
	return 0;
}

uint32_t walk_take(struct target *target, const struct walk_sample *sample, struct unwind_frame *frames,
    size_t before, uint64_t outcomes[UNWIND_COUNTS], struct walk_result *result)
{
	size_t count = 0, skipped = 0;
	enum unwind_outcome outcome = UNWIND_NO_MAP;
	const char *marker = STACK_NONE;
	struct maps *maps = target->maps;

	if (sample->regs) {
		const struct unwind_frame *innermost = frames + before;

		outcome = walk(target, sample, frames + before, &count, &maps);
		maps = maps ? maps : target->maps; /* belongs to no frame */
		struct rarities found = look_for_rarities(innermost, count);
		if (found.generated) {
			const uint64_t now_ns = clock_now_ns();

			target_met_generated_code(target, now_ns);
			/* The code may be newer than the rows that are known for it. */
			const bool wanted = found.guess || outcome != UNWIND_COMPLETE;
			if (target_read_jit_rows(target, wanted, now_ns) && maps) {
				outcome = unwind(target, maps, sample, frames + before, &count);
				found = look_for_rarities(innermost, count);
			}
		}
		outcomes[outcome]++;
		outcomes[UNWIND_GUESSED] += found.guess;
		marker = unwind_marker(outcome);
		skipped = sample->skips_innermost ? own_frames(innermost, count) : 0;
	}
	if (result)
		*result = (struct walk_result){frames + before, count, outcome, maps,
		    outcome == UNWIND_STACK_SWITCH && count > 1
		        ? find_go_switch(maps, frames + before, count - 1, count)
		        : 0};
	return stacks_intern(target->stacks, frames + skipped, before + count - skipped, marker, maps);
}

bool walk_read_frames(struct maps *maps, const uint64_t *addresses, size_t count, struct unwind_frame *frames,
    struct walk_result *result)
{
	for (size_t i = 0; i < count; i++) {
		const uint64_t pc = ((const volatile uint64_t *)addresses)[i] - 1;
		const struct map *map = maps_module(maps, pc);

		if (!map ||
		    (!map->has_bias &&
		        maps_generated_rule(maps, map, pc, regs_arch_native()->e_machine)->kind == CFI_NONE))
			return false;
		frames[i] = (struct unwind_frame){
		    .pc = pc,
		    .vaddr = map->has_bias ? pc - map->bias : pc,
		    .module = map->has_bias ? map->module : NULL,
		    .kind = (uint8_t)map->kind,
		    .step = UNWIND_STEP_CFI,
		};
	}
	*result = (struct walk_result){
	    frames, count, UNWIND_COMPLETE, maps, find_go_switch(maps, frames, 1, count)};
	return true;
}

uint32_t walk_intern(const struct target *target, const struct walk_result *result)
{
	const size_t own = own_frames(result->frames, result->count);

	return stacks_intern(target->stacks, result->frames + own, result->count - own,
	    unwind_marker(result->outcome), result->maps);
}
