/* SPDX-License-Identifier: Apache-2.0 */
#include "sampler/unwind/unwind.h"
#include "sampler/unwind/cfi.h"
#include "sampler/unwind/cfi_odd.h"
#include "sampler/unwind/return_address.h"

#include <string.h>

/* An address farther above the dump than this is on another stack. */
static const uint64_t same_stack_bytes = UINT64_C(64) << 20;

/* A program counter with its map and rule; a cache per address space in front of the maps and the modules'
 * tables. */
struct pc_info {
	uint64_t pc;
	const struct cfi_rule *rule; /* NULL: nothing cached here */
	const struct map *map;       /* NULL: pc is in none */
	uint32_t tag;                /* of unwind_remember() */
	uint8_t after_call;          /* enum return_address_call, of pc + 1 */
};

/*
 * Direct-mapped, emptied whenever the maps change. It grows on demand: a thousand short processes must not
 * take much memory, and a compiler has ten thousand return addresses.
 */
enum { ENTRIES_FIRST = 256, ENTRIES_MAX = 16384, GROWTH = 4 };

/*
 * The trail holds the frames' addresses of the last walk. The next stack mostly has the same outer frames at
 * the same addresses, and a dump that has just arrived is not in this CPU's cache: prefetching all of them at
 * once takes as long as the walk would wait for one frame.
 */
enum { TRAIL = 256 };

struct cache {
	uint32_t misses;
	uint32_t trail_count;
	uint64_t trail[TRAIL]; /* CFAs */
	struct pc_info entry[];
};

struct walk {
	const struct unwind_input *in;
	const struct regs_arch *arch;
	struct cache *cache;  /* or NULL */
	uint32_t entry_count; /* entries in the cache, a power of two */
	struct regs regs;     /* of the frame being left */
	uint64_t bound;       /* one past the dump's last byte */
	/* What it means to need a byte above the dump: UNWIND_TRUNCATED, the stack continues there;
	 * UNWIND_NOT_PRESENT, it may; UNWIND_BAD_READ, it does not. */
	enum unwind_outcome above;
};

/* The dump may lie in memory that the target still writes (sampler/region/region.h): what has been read once
 * must not be read a second time after it was checked, as a compiler is free to do with a copy of memory. */
#define READ_ONCE_ONLY(word) __asm__("" : "+r"(word))

static inline bool read_word(const struct walk *w, uint64_t address, uint64_t *value)
{
	uint64_t offset = address - w->in->stack_address;

	if (offset >= w->in->stack_bytes || w->in->stack_bytes - offset < 8)
		return false;
	uint64_t word;
	memcpy(&word, (const char *)w->in->stack + offset, 8);
	READ_ONCE_ONLY(word);
	*value = word;
	return true;
}

static bool read_some(void *context, uint64_t address, unsigned n, uint64_t *value)
{
	const struct walk *w = context;
	uint64_t offset = address - w->in->stack_address;

	if (offset >= w->in->stack_bytes || w->in->stack_bytes - offset < n)
		return false;
	uint64_t word = 0;
	memcpy(&word, (const char *)w->in->stack + offset, n); /* both sides are little-endian */
	READ_ONCE_ONLY(word);
	*value = word;
	return true;
}

static size_t cache_bytes(uint32_t entry_count)
{
	return sizeof(struct cache) + entry_count * sizeof(struct pc_info);
}

/* The address space's cache and its number of entries; NULL if it has none yet. */
static struct cache *cache_of(struct maps *maps, uint32_t *entry_count)
{
	size_t bytes = maps_scratch_bytes(maps);
	struct cache *cache;

	*entry_count = bytes ? (uint32_t)((bytes - sizeof(*cache)) / sizeof(struct pc_info)) : ENTRIES_FIRST;
	cache = maps_scratch(maps, cache_bytes(*entry_count));
	if (!cache || cache->misses < 2 * *entry_count || *entry_count == ENTRIES_MAX)
		return cache;
	*entry_count *= GROWTH;
	return maps_scratch(maps, cache_bytes(*entry_count));
}

static size_t entry_index(uint64_t pc, uint32_t entry_count)
{
	/* 2^64 / golden ratio: spreads neighbours, and the upper bits depend on all lower ones. */
	return (pc * UINT64_C(0x9e3779b97f4a7c15) >> 32) * entry_count >> 32;
}

/* The return address is below the CFA, saved registers are below that: mostly one cache line, sometimes
 * two. */
enum { SAVED_BYTES = 7 * 8, LAST_SAVED = SAVED_BYTES - 8 }; /* x86-64: return address, rbp, rbx, r12-r15 */

static void prefetch_trail(
    const struct cache *cache, uint64_t stack_address, const char *stack, size_t stack_bytes)
{
	for (uint32_t i = 0; i < cache->trail_count; i++) {
		uint64_t offset = cache->trail[i] - SAVED_BYTES - stack_address;

		if (offset >= stack_bytes || stack_bytes - offset < SAVED_BYTES)
			continue;
		__builtin_prefetch(stack + offset);
		__builtin_prefetch(stack + offset + LAST_SAVED);
	}
}

void unwind_prefetch(struct maps *maps, uint64_t stack_address, const void *stack, size_t stack_bytes)
{
	uint32_t entry_count;
	const struct cache *cache = cache_of(maps, &entry_count);

	if (cache)
		prefetch_trail(cache, stack_address, stack, stack_bytes);
}

static bool has_file(const struct pc_info *info)
{
	return info->map && info->map->has_bias;
}

static void find_info(const struct walk *w, uint64_t pc, struct pc_info *info)
{
	info->pc = pc;
	info->rule = &cfi_no_rule;
	info->map = maps_module(w->in->maps, pc);
	info->tag = 0;
	info->after_call = AFTER_CALL_UNKNOWN;
	if (has_file(info) && info->map->module->readable &&
	    info->map->module->file.e_machine == w->arch->e_machine)
		info->rule =
		    module_rule_within(info->map->module, pc - info->map->bias, maps_cfi_work(w->in->maps));
	else if (info->map && !info->map->module)
		info->rule = maps_generated_rule(w->in->maps, info->map, pc, w->arch->e_machine);
}

static struct pc_info *look_up(const struct walk *w, uint64_t pc, struct pc_info *uncached)
{
	struct pc_info *info = w->cache ? &w->cache->entry[entry_index(pc, w->entry_count)] : NULL;

	if (info && info->rule && info->pc == pc)
		return info;
	find_info(w, pc, uncached);
	if (!info)
		return uncached;
	w->cache->misses++;
	/* The row may be read the next time. */
	if (uncached->rule == &cfi_unread_rule)
		return uncached;
	*info = *uncached;
	return info;
}

/*
 * A return address may have been written not by a call but by code that prepares a stack (makecontext()
 * writes __start_context there). Then it is the address of a function's first instruction, and 1 must not be
 * subtracted. If that function's row then gives a return address that is not code (in glibc 2.36 it is
 * uc_link), the prepared stack begins here.
 */
static bool starts_function(const struct walk *w, uint64_t pc, struct pc_info *info)
{
	find_info(w, pc, info);
	return info->rule->kind != CFI_NONE;
}

/* Is the code at INFO's pc what signal handlers return to? No call is in front of that, and symbols are those
 * of the address itself. */
static bool is_returned_to(const struct pc_info *info)
{
	return info->rule->kind == CFI_ODD && info->rule->odd->returned_to;
}

/* The reason why the word at ADDRESS is not in the dump. */
static enum unwind_outcome why_missing(const struct walk *w, uint64_t address, bool signal_frame)
{
	if (address < w->in->stack_address)
		return signal_frame ? UNWIND_STACK_SWITCH : UNWIND_BAD_READ;
	if (address - w->in->stack_address >= same_stack_bytes)
		return UNWIND_STACK_SWITCH;
	return signal_frame && w->above != UNWIND_TRUNCATED ? UNWIND_STACK_SWITCH : w->above;
}

static inline bool known(const struct regs *regs, unsigned n)
{
	return regs->known >> n & 1;
}

/* A function that nobody has called (see starts_function) on a machine that has return addresses in a
 * register: the function that "returned" here has used that for its own. The prepared stack begins here. */
static bool lacks_return_address(const struct walk *w, const struct cfi_rule *rule)
{
	return rule->kind == CFI_SIMPLE && rule->ra_in_register && !known(&w->regs, w->arch->ra);
}

/*
 * The caller's stack pointer must be above the callee's: only a leaf whose return address is in a register
 * may have no frame at all. From a signal handler's frame the walk continues on the stack of the interrupted
 * code, which may be anywhere.
 */
static enum unwind_outcome check_progress(
    const struct walk *w, uint64_t sp, uint64_t next_sp, bool may_stay, bool signal_frame)
{
	if (next_sp > sp || (may_stay && next_sp == sp))
		return UNWIND_COMPLETE;
	if (signal_frame || next_sp < w->in->stack_address)
		return UNWIND_STACK_SWITCH;
	return UNWIND_LOOP;
}

/* The common case, a plain row with its whole frame in the dump: one check, and no branch that depends on the
 * row. */
static inline bool step_compact(struct walk *w, const struct cfi_rule *rule)
{
	const struct regs_arch *arch = w->arch;
	struct regs *regs = &w->regs;
	uint64_t sp = regs->r[arch->sp], cfa = regs->r[rule->cfa_reg] + (uint64_t)(int64_t)rule->cfa_offset;
	uint64_t word, has = regs->known & arch->preserved;
	const char *at;

	if (!rule->compact_bytes || cfa > w->bound || cfa < sp || cfa - sp < rule->compact_bytes ||
	    sp < w->in->stack_address || !known(regs, rule->cfa_reg) || rule->ra_in_register)
		return false;
	at = (const char *)w->in->stack + (cfa - w->in->stack_address);
	for (unsigned i = 0; i < arch->tracked_count; i++) {
		uint64_t *r = &regs->r[arch->tracked[i]], is_saved = rule->saved >> i & 1;

		memcpy(&word, at + rule->offset[i], 8);
		READ_ONCE_ONLY(word);
		*r = is_saved ? word : *r;
		has |= is_saved << arch->tracked[i];
	}
	regs->known = has;
	memcpy(&word, at + rule->ra_offset, 8);
	READ_ONCE_ONLY(word);
	regs->pc = word;
	regs->r[arch->sp] = cfa;
	return true;
}

static enum unwind_outcome step_simple(struct walk *w, const struct cfi_rule *rule, bool activation)
{
	const struct regs_arch *arch = w->arch;
	struct regs *regs = &w->regs;
	uint64_t sp = regs->r[arch->sp], cfa, pc, slot;
	enum unwind_outcome outcome;

	if (!known(regs, rule->cfa_reg))
		return UNWIND_BAD_ROW;
	cfa = regs->r[rule->cfa_reg] + (uint64_t)(int64_t)rule->cfa_offset;
	outcome = check_progress(w, sp, cfa, rule->ra_in_register && activation, false);
	if (outcome != UNWIND_COMPLETE)
		return outcome;
	if (rule->ra_in_register) {
		if (!known(regs, arch->ra))
			return UNWIND_BAD_ROW;
		pc = regs->r[arch->ra];
	} else if (!read_word(w, cfa + (uint64_t)(int64_t)rule->ra_offset, &pc)) {
		return why_missing(w, cfa + (uint64_t)(int64_t)rule->ra_offset, false);
	}
	for (unsigned saved = rule->saved; saved; saved &= saved - 1) {
		unsigned i = (unsigned)__builtin_ctz(saved), number = arch->tracked[i];

		slot = cfa + (uint64_t)(int64_t)rule->offset[i];
		/* Below the stack pointer: popped already, so the register has its value again (compilers'
		 * rows do not say so). */
		if (slot < sp)
			continue;
		if (read_word(w, slot, &regs->r[number]))
			regs->known |= UINT64_C(1) << number;
		else
			regs->known &= ~(UINT64_C(1) << number);
	}
	regs->known &= arch->preserved;
	regs->r[arch->sp] = cfa;
	regs->pc = pc;
	return UNWIND_COMPLETE;
}

static enum unwind_outcome step_odd(struct walk *w, const struct cfi_rule *rule, bool activation)
{
	const struct regs_arch *arch = w->arch;
	uint64_t sp = w->regs.r[arch->sp], cfa, missing;
	enum unwind_outcome outcome;

	if (!cfi_odd_step(rule->odd, arch, &w->regs, read_some, w, &cfa, &missing))
		return missing ? why_missing(w, missing, rule->signal_frame) : UNWIND_BAD_ROW;
	outcome = check_progress(w, sp, w->regs.r[arch->sp],
	    rule->odd->ra.how == CFI_ODD_REGISTER && activation, rule->signal_frame);
	if (outcome != UNWIND_COMPLETE)
		return outcome;
	/* The interrupted code must be on this stack too, otherwise the next read would report only a missing
	 * word. */
	if (rule->signal_frame && w->regs.r[arch->sp] >= w->bound)
		return why_missing(w, w->regs.r[arch->sp], true);
	if (!rule->signal_frame)
		w->regs.known &= arch->preserved;
	return UNWIND_COMPLETE;
}

/* Could FP be the frame pointer of the caller of a function that has CALLEE's? Above the dump it could be if
 * the stack goes on there. */
static bool leads_on(const struct walk *w, uint64_t fp, uint64_t callee_fp)
{
	uint64_t offset = fp - w->in->stack_address;

	return fp > callee_fp && fp % 8 == 0 &&
	    (offset + 16 <= w->in->stack_bytes ||
	        (w->above == UNWIND_TRUNCATED && offset < same_stack_bytes));
}

/*
 * Is PC, found at the frame pointer FP with CALLER_FP below it, a return address? Where no call can be looked
 * for, the caller is code that keeps no rows either, and is believed if it has a frame pointer; or if both
 * are made at run time: native calls of Java are generated code with a frame pointer, and what calls them is
 * compiled without.
 */
static bool is_return_address(
    const struct walk *w, bool from_file, uint64_t fp, uint64_t caller_fp, uint64_t pc)
{
	struct pc_info uncached, *info = look_up(w, pc - 1, &uncached);

	if (!info->map)
		return false;
	if (info->after_call == AFTER_CALL_UNKNOWN)
		info->after_call =
		    (uint8_t)return_address_look(w->in->maps, info->map, info->pc + 1, w->arch->e_machine);
	if (info->after_call != AFTER_CALL_UNREADABLE)
		return info->after_call == AFTER_CALL;
	return leads_on(w, caller_fp, fp) || (!from_file && info->map->kind != MAP_KIND_FILE);
}

/*
 * Code without rows: {caller's frame pointer, return address} at the frame pointer, as both ABIs lay it out.
 * Believed only if it is on this stack above us and the return address can be one.
 */
static enum unwind_outcome step_fp(
    struct walk *w, const struct pc_info *info, enum unwind_step found_by, bool activation)
{
	const struct regs_arch *arch = w->arch;
	uint64_t sp = w->regs.r[arch->sp], fp = w->regs.r[arch->fp], caller_fp, pc;
	enum unwind_outcome stuck = has_file(info) && !info->map->module->readable ? UNWIND_NO_MODULE
	    : info->rule == &cfi_unread_rule                                       ? UNWIND_UNREAD_CFI
	                                                                           : UNWIND_NO_CFI;
	bool from_file = info->map->kind == MAP_KIND_FILE;
	/* Frames that were found by frame pointer are marked as guesses already, and their end with them. */
	enum unwind_outcome end = found_by == UNWIND_STEP_FP ? UNWIND_COMPLETE : UNWIND_END_GUESSED;

	if (!known(&w->regs, arch->fp))
		return stuck;
	/*
	 * Both ABIs have the start-up code set the frame pointer to zero to mark the outermost frame. Other
	 * code of a file may be such code, a thread's; run-time generated code may use the register for
	 * anything.
	 */
	if (fp == 0 && !activation && from_file) {
		w->regs.pc = 0;
		return return_address_is_start_up(info->map, info->pc) ? UNWIND_COMPLETE : end;
	}
	if (fp < sp || fp % 8)
		return stuck;
	if (!read_word(w, fp, &caller_fp) || !read_word(w, fp + 8, &pc)) {
		const uint64_t stack_bytes = w->above == UNWIND_TRUNCATED ? same_stack_bytes
		    : w->above == UNWIND_NOT_PRESENT                      ? w->in->stack_want
		                                                          : 0;

		return fp - w->in->stack_address < stack_bytes ? w->above : stuck;
	}
	pc &= arch->code_mask;
	if ((pc || caller_fp) && !is_return_address(w, from_file, fp, caller_fp, pc))
		return stuck; /* info may be another's by now */
	w->regs.r[arch->sp] = fp + 16;
	w->regs.r[arch->fp] = caller_fp;
	w->regs.known = UINT64_C(1) << arch->sp | UINT64_C(1) << arch->fp;
	w->regs.pc = pc;
	return pc ? UNWIND_COMPLETE : end;
}

/*
 * Of a function with rows that was found by frame pointer the stack pointer is not known. Its frame record is
 * where its frame pointer points to (AAPCS64, "The Frame Pointer"), and its row says how far that is from the
 * end of its frame. Seen with node, whose generated code is called by C++.
 */
static void find_stack_pointer(struct walk *w, const struct cfi_rule *rule)
{
	const struct regs_arch *arch = w->arch;

	if (rule->cfa_reg != arch->sp || !known(&w->regs, arch->fp))
		return;
	for (unsigned saved = rule->saved; saved; saved &= saved - 1) {
		const unsigned i = (unsigned)__builtin_ctz(saved);
		const uint64_t sp = w->regs.r[arch->fp] - (uint64_t)(int64_t)rule->offset[i] -
		    (uint64_t)(int64_t)rule->cfa_offset;

		if (arch->tracked[i] == arch->fp && sp > w->regs.r[arch->sp])
			w->regs.r[arch->sp] = sp;
	}
}

static void add_frame(struct unwind_frame *frame, const struct pc_info *info, uint64_t pc,
    enum unwind_step step, bool activation)
{
	frame->pc = pc;
	frame->vaddr = has_file(info) ? pc - info->map->bias : pc;
	frame->module = has_file(info) ? info->map->module : NULL;
	frame->kind = (uint8_t)(info->map ? info->map->kind : MAP_KIND_SPECIAL);
	frame->step = (uint8_t)step;
	frame->activation = activation;
	frame->tag = info->tag;
}

void unwind_remember(struct maps *maps, const struct unwind_frame *frame, uint32_t tag)
{
	uint32_t entry_count;
	struct cache *cache = cache_of(maps, &entry_count);
	struct pc_info *info = cache ? &cache->entry[entry_index(frame->pc, entry_count)] : NULL;

	if (info && info->rule && info->pc == frame->pc)
		info->tag = tag;
}

/* Goes from the frame at a pc to its caller; *how and *activation then describe the caller. A pc of 0: there
 * is no caller. */
static enum unwind_outcome step(
    struct walk *w, const struct pc_info *info, enum unwind_step *how, bool *activation)
{
	const struct cfi_rule *rule = info->rule;
	bool was_activation = *activation;
	enum unwind_step found_by = *how;
	enum unwind_outcome outcome = UNWIND_COMPLETE;

	*how = rule->kind == CFI_NONE ? UNWIND_STEP_FP : UNWIND_STEP_CFI;
	*activation = rule->signal_frame;
	if (found_by == UNWIND_STEP_FP && rule->kind == CFI_SIMPLE && !w->arch->record_ends_frame)
		find_stack_pointer(w, rule);
	if (rule->kind == CFI_SIMPLE && step_compact(w, rule))
		outcome = UNWIND_COMPLETE;
	else if (rule->kind == CFI_SIMPLE)
		outcome = step_simple(w, rule, was_activation);
	else if (rule->kind == CFI_ODD)
		outcome = step_odd(w, rule, was_activation);
	else if (rule->kind == CFI_END)
		w->regs.pc = 0;
	else if (info->map)
		outcome = step_fp(w, info, found_by, was_activation);
	else
		outcome = UNWIND_NO_MAP;
	w->regs.pc &= w->arch->code_mask;
	return outcome;
}

enum unwind_outcome unwind_stack(
    const struct unwind_input *in, struct unwind_frame *frames, size_t max, size_t *count)
{
	struct walk w;
	enum unwind_step how = UNWIND_STEP_FIRST;
	enum unwind_outcome outcome;
	struct pc_info uncached, exact;
	bool activation = true, made_up = false;
	size_t n = 0;

	w.in = in;
	w.arch = in->arch;
	w.regs.pc = in->regs->pc;
	w.regs.known = in->regs->known;
	memcpy(w.regs.r, in->regs->r, in->arch->count * sizeof(w.regs.r[0]));
	w.bound = in->stack_address + in->stack_bytes;
	w.above = in->reaches_end              ? UNWIND_BAD_READ
	    : in->stack_bytes < in->stack_want ? UNWIND_NOT_PRESENT
	                                       : UNWIND_TRUNCATED;
	w.cache = cache_of(in->maps, &w.entry_count);
	if (w.cache)
		prefetch_trail(w.cache, in->stack_address, in->stack, in->stack_bytes);
	do {
		uint64_t pc = w.regs.pc - !activation;
		const struct pc_info *info = look_up(&w, pc, &uncached);
		bool was_made_up = made_up;

		/* One found by frame pointer is known to follow a call, if its code can be read. */
		made_up = !activation && info->rule->kind == CFI_NONE && how != UNWIND_STEP_FP &&
		    starts_function(&w, w.regs.pc, &exact);
		if (made_up || (!activation && is_returned_to(info))) {
			pc = w.regs.pc;
			info = made_up ? &exact : look_up(&w, pc, &uncached);
			activation = true;
		}
		if (!info->map && n > 0) {
			outcome = was_made_up ? UNWIND_COMPLETE : UNWIND_NO_MAP;
			break;
		}
		if (n == max) {
			outcome = UNWIND_TOO_DEEP;
			break;
		}
		add_frame(&frames[n++], info, pc, how, activation);
		if (made_up && lacks_return_address(&w, info->rule)) {
			outcome = UNWIND_COMPLETE;
			break;
		}
		outcome = step(&w, info, &how, &activation);
		if (w.cache && n <= TRAIL)
			w.cache->trail[n - 1] = w.regs.r[w.arch->sp];
	} while (outcome == UNWIND_COMPLETE && w.regs.pc);
	if (w.cache)
		w.cache->trail_count = (uint32_t)(n < TRAIL ? n : TRAIL);
	*count = n;
	return outcome;
}
