/* SPDX-License-Identifier: Apache-2.0 */
#include "sampler/unwind/unwind.h"
#include "sampler/unwind/cfi_odd.h"
#include "sampler/unwind/go_switch.h"
#include "sampler/unwind/pc_cache.h"

#include <elf.h>
#include <string.h>

/* An address farther above the dump than this is on another stack. */
static const uint64_t same_stack_bytes = UINT64_C(64) << 20;

struct unwinding {
	const struct unwind_input *in;
	const struct regs_arch *arch;
	struct pc_space space;
	struct regs regs; /* of the frame being left */
	uint64_t bound;   /* one past the dump's last byte */
	/* The outcome if a byte above the dump is needed. UNWIND_TRUNCATED: the stack continues there;
	 * UNWIND_NOT_PRESENT: it may; UNWIND_BAD_READ: it does not. */
	enum unwind_outcome above;
};

/* The dump may lie in memory that the target still writes (sampler/intake/region.h): a word must not be read
 * a second time after it was checked. A compiler is free to do that with a copy of memory. */
#define READ_ONCE_ONLY(word) __asm__("" : "+r"(word))

static inline bool read_word(const struct unwinding *u, uint64_t address, uint64_t *value)
{
	uint64_t offset = address - u->in->stack_address;

	if (offset >= u->in->stack_bytes || u->in->stack_bytes - offset < 8)
		return false;
	uint64_t word;
	memcpy(&word, (const char *)u->in->stack + offset, 8);
	READ_ONCE_ONLY(word);
	*value = word;
	return true;
}

static bool read_some(void *context, uint64_t address, unsigned n, uint64_t *value)
{
	const struct unwinding *u = context;
	uint64_t offset = address - u->in->stack_address;

	if (offset >= u->in->stack_bytes || u->in->stack_bytes - offset < n)
		return false;
	uint64_t word = 0;
	memcpy(&word, (const char *)u->in->stack + offset, n); /* both sides are little-endian */
	READ_ONCE_ONLY(word);
	*value = word;
	return true;
}

/*
 * A return address may have been written not by a call but by code that prepares a stack (makecontext()
 * writes __start_context there). Then it is the address of a function's first instruction, and 1 must not be
 * subtracted. If that function's row then gives a return address that is not code (in glibc 2.36 it is
 * uc_link), the prepared stack begins here.
 */
static bool starts_function(const struct unwinding *u, uint64_t pc, struct pc_info *info)
{
	pc_space_find(&u->space, pc, info);
	return info->rule->kind != CFI_NONE;
}

/* Do signal handlers return to the code at INFO's pc? No call is in front of such code, and its symbol is
 * that of the address itself. */
static bool is_returned_to(const struct pc_info *info)
{
	return info->rule->kind == CFI_ODD && info->rule->odd->returned_to;
}

/* The reason why the word at ADDRESS is not in the dump. */
static enum unwind_outcome why_missing(const struct unwinding *u, uint64_t address, bool signal_frame)
{
	if (address < u->in->stack_address)
		return signal_frame ? UNWIND_STACK_SWITCH : UNWIND_BAD_READ;
	if (address - u->in->stack_address >= same_stack_bytes)
		return UNWIND_STACK_SWITCH;
	return signal_frame && u->above != UNWIND_TRUNCATED ? UNWIND_STACK_SWITCH : u->above;
}

static inline bool known(const struct regs *regs, unsigned n)
{
	return regs->known >> n & 1;
}

/* A function that nobody has called (see starts_function), on a machine with return addresses in a register:
 * the function that "returned" here has used the register for its own return address. The prepared stack
 * begins here. */
static bool lacks_return_address(const struct unwinding *u, const struct cfi_rule *rule)
{
	return rule->kind == CFI_SIMPLE && rule->ra_in_register && !known(&u->regs, u->arch->ra);
}

/*
 * The caller's stack pointer must be above the callee's: only a leaf whose return address is in a register
 * may have no frame at all. From a signal handler's frame the unwinding goes on to the stack of the
 * interrupted code, which may be anywhere.
 */
static enum unwind_outcome check_progress(
    const struct unwinding *u, uint64_t sp, uint64_t next_sp, bool may_stay, bool signal_frame)
{
	if (next_sp > sp || (may_stay && next_sp == sp))
		return UNWIND_COMPLETE;
	if (signal_frame || next_sp < u->in->stack_address)
		return UNWIND_STACK_SWITCH;
	return UNWIND_LOOP;
}

/* The common case, a plain row with its whole frame in the dump: one check, and no branch that depends on the
 * row. */
static inline bool step_compact(struct unwinding *u, const struct cfi_rule *rule)
{
	const struct regs_arch *arch = u->arch;
	struct regs *regs = &u->regs;
	uint64_t sp = regs->r[arch->sp], cfa = regs->r[rule->cfa_reg] + (uint64_t)(int64_t)rule->cfa_offset;
	uint64_t word, has = regs->known & arch->preserved;
	const char *at;

	if (!rule->compact_bytes || cfa > u->bound || cfa < sp || cfa - sp < rule->compact_bytes ||
	    sp < u->in->stack_address || !known(regs, rule->cfa_reg) || rule->ra_in_register)
		return false;
	at = (const char *)u->in->stack + (cfa - u->in->stack_address);
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

static enum unwind_outcome step_simple(struct unwinding *u, const struct cfi_rule *rule, bool activation)
{
	const struct regs_arch *arch = u->arch;
	struct regs *regs = &u->regs;
	uint64_t sp = regs->r[arch->sp], cfa, pc, slot;
	enum unwind_outcome outcome;

	if (!known(regs, rule->cfa_reg))
		return UNWIND_BAD_ROW;
	cfa = regs->r[rule->cfa_reg] + (uint64_t)(int64_t)rule->cfa_offset;
	outcome = check_progress(u, sp, cfa, rule->ra_in_register && activation, false);
	if (outcome != UNWIND_COMPLETE)
		return outcome;
	if (rule->ra_in_register) {
		if (!known(regs, arch->ra))
			return UNWIND_BAD_ROW;
		pc = regs->r[arch->ra];
	} else if (!read_word(u, cfa + (uint64_t)(int64_t)rule->ra_offset, &pc)) {
		return why_missing(u, cfa + (uint64_t)(int64_t)rule->ra_offset, false);
	}
	for (unsigned saved = rule->saved; saved; saved &= saved - 1) {
		unsigned i = (unsigned)__builtin_ctz(saved), number = arch->tracked[i];

		slot = cfa + (uint64_t)(int64_t)rule->offset[i];
		/* A word below the stack pointer was popped already: the register has its value again.
		 * Compilers' rows do not say so. */
		if (slot < sp)
			continue;
		if (read_word(u, slot, &regs->r[number]))
			regs->known |= UINT64_C(1) << number;
		else
			regs->known &= ~(UINT64_C(1) << number);
	}
	regs->known &= arch->preserved;
	regs->r[arch->sp] = cfa;
	regs->pc = pc;
	return UNWIND_COMPLETE;
}

static enum unwind_outcome step_odd(struct unwinding *u, const struct cfi_rule *rule, bool activation)
{
	const struct regs_arch *arch = u->arch;
	uint64_t sp = u->regs.r[arch->sp], cfa, missing;
	enum unwind_outcome outcome;

	if (!cfi_odd_step(rule->odd, arch, &u->regs, read_some, u, &cfa, &missing))
		return missing ? why_missing(u, missing, rule->signal_frame) : UNWIND_BAD_ROW;
	outcome = check_progress(u, sp, u->regs.r[arch->sp],
	    rule->odd->ra.how == CFI_ODD_REGISTER && activation, rule->signal_frame);
	if (outcome != UNWIND_COMPLETE)
		return outcome;
	/* The interrupted code must be on this stack, too: otherwise the next read would only report a
	 * missing word. */
	if (rule->signal_frame && u->regs.r[arch->sp] >= u->bound)
		return why_missing(u, u->regs.r[arch->sp], true);
	if (!rule->signal_frame)
		u->regs.known &= arch->preserved;
	return UNWIND_COMPLETE;
}

/* Can FP be the frame pointer of the caller of a function with the frame pointer CALLEE_FP? Above the dump it
 * can if the stack goes on there. */
static bool leads_on(const struct unwinding *u, uint64_t fp, uint64_t callee_fp)
{
	uint64_t offset = fp - u->in->stack_address;

	return fp > callee_fp && fp % 8 == 0 &&
	    (offset + 16 <= u->in->stack_bytes ||
	        (u->above == UNWIND_TRUNCATED && offset < same_stack_bytes));
}

/*
 * Is PC, found at the frame pointer FP with CALLER_FP below it, a return address? Where the code cannot be
 * read, the caller has no rows either. The caller is believed if it has a frame pointer, or if both functions
 * were made at run time: Java's stubs for native calls are generated code with a frame pointer, and the
 * compiled code that calls them has none.
 */
static bool is_return_address(
    const struct unwinding *u, bool from_file, uint64_t fp, uint64_t caller_fp, uint64_t pc)
{
	struct pc_info uncached, *info = pc_space_look_up(&u->space, pc - 1, &uncached);

	if (!info->map)
		return false;
	const enum pc_call call = pc_info_call(&u->space, info);
	if (call != PC_CALL_UNREADABLE)
		return call == PC_CALL;
	return leads_on(u, caller_fp, fp) || (!from_file && info->map->kind != MAP_KIND_FILE);
}

/*
 * Code without rows: {caller's frame pointer, return address} at the frame pointer, as both ABIs lay it out.
 * Believed only if the pair is on this stack above us and the return address can be one.
 */
static enum unwind_outcome step_fp(
    struct unwinding *u, const struct pc_info *info, enum unwind_step found_by, bool activation)
{
	const struct regs_arch *arch = u->arch;
	uint64_t sp = u->regs.r[arch->sp], fp = u->regs.r[arch->fp], caller_fp, pc;
	enum unwind_outcome stuck = pc_info_has_file(info) && !info->map->module->readable ? UNWIND_NO_MODULE
	    : info->rule == &cfi_unread_rule                                               ? UNWIND_UNREAD_CFI
	                                                                                   : UNWIND_NO_CFI;
	bool from_file = info->map->kind == MAP_KIND_FILE;
	/* Frames found by frame pointer are marked as guesses already, and so is their end. */
	enum unwind_outcome end = found_by == UNWIND_STEP_FP ? UNWIND_COMPLETE : UNWIND_END_GUESSED;

	if (!known(&u->regs, arch->fp))
		return stuck;
	/*
	 * Both ABIs have the start-up code set the frame pointer to zero to mark the outermost frame. Other
	 * code of a file may be a thread's start-up code. Code made at run time may use the register for
	 * anything.
	 */
	if (fp == 0 && !activation && from_file) {
		u->regs.pc = 0;
		return pc_info_is_start_up(info) ? UNWIND_COMPLETE : end;
	}
	if (fp < sp || fp % 8)
		return stuck;
	if (!read_word(u, fp, &caller_fp) || !read_word(u, fp + 8, &pc)) {
		const uint64_t stack_bytes = u->above == UNWIND_TRUNCATED ? same_stack_bytes
		    : u->above == UNWIND_NOT_PRESENT                      ? u->in->stack_want
		                                                          : 0;

		return fp - u->in->stack_address < stack_bytes ? u->above : stuck;
	}
	pc &= arch->code_mask;
	if ((pc || caller_fp) && !is_return_address(u, from_file, fp, caller_fp, pc))
		return stuck; /* the look-up may have replaced `info` */
	u->regs.r[arch->sp] = fp + 16;
	u->regs.r[arch->fp] = caller_fp;
	u->regs.known = UINT64_C(1) << arch->sp | UINT64_C(1) << arch->fp;
	u->regs.pc = pc;
	return pc ? UNWIND_COMPLETE : end;
}

/*
 * If a function with rows was found by frame pointer, its stack pointer is unknown. Its frame pointer points
 * to its frame record (AAPCS64, "The Frame Pointer"), and its row says how far the record is from the end of
 * the frame. Seen with node, whose generated code is called by C++.
 */
static void find_stack_pointer(struct unwinding *u, const struct cfi_rule *rule)
{
	const struct regs_arch *arch = u->arch;

	if (rule->cfa_reg != arch->sp || !known(&u->regs, arch->fp))
		return;
	for (unsigned saved = rule->saved; saved; saved &= saved - 1) {
		const unsigned i = (unsigned)__builtin_ctz(saved);
		const uint64_t sp = u->regs.r[arch->fp] - (uint64_t)(int64_t)rule->offset[i] -
		    (uint64_t)(int64_t)rule->cfa_offset;

		if (arch->tracked[i] == arch->fp && sp > u->regs.r[arch->sp])
			u->regs.r[arch->sp] = sp;
	}
}

static void add_frame(struct unwind_frame *frame, const struct pc_info *info, uint64_t pc,
    enum unwind_step step, bool activation)
{
	frame->pc = pc;
	frame->vaddr = pc_info_has_file(info) ? pc - info->map->bias : pc;
	frame->module = pc_info_has_file(info) ? info->map->module : NULL;
	frame->kind = (uint8_t)(info->map ? info->map->kind : MAP_KIND_SPECIAL);
	frame->step = (uint8_t)step;
	frame->activation = activation;
	frame->tag = info->tag;
}

void unwind_remember(struct maps *maps, const struct unwind_frame *frame, uint32_t tag)
{
	const struct pc_space space = pc_space_of(maps, EM_NONE);
	struct pc_info *info = space.cache ? pc_space_entry(&space, frame->pc) : NULL;

	if (info && info->rule && info->pc == frame->pc)
		info->tag = tag;
}

void unwind_prefetch(struct maps *maps, uint64_t stack_address, const void *stack, size_t stack_bytes)
{
	const struct pc_space space = pc_space_of(maps, EM_NONE);

	if (space.cache)
		pc_cache_prefetch(space.cache, stack_address, stack, stack_bytes);
}

/* Goes from a frame to its caller; *how and *activation then describe the caller. A pc of 0 means that there
 * is no caller. */
static enum unwind_outcome step(
    struct unwinding *u, const struct pc_info *info, enum unwind_step *how, bool *activation)
{
	const struct cfi_rule *rule = info->rule;
	bool was_activation = *activation;
	enum unwind_step found_by = *how;
	enum unwind_outcome outcome = UNWIND_COMPLETE;

	*how = rule->kind == CFI_NONE ? UNWIND_STEP_FP : UNWIND_STEP_CFI;
	*activation = rule->signal_frame;
	if (found_by == UNWIND_STEP_FP && rule->kind == CFI_SIMPLE && !u->arch->record_ends_frame)
		find_stack_pointer(u, rule);
	if (rule->kind == CFI_SIMPLE && step_compact(u, rule))
		outcome = UNWIND_COMPLETE;
	else if (rule->kind == CFI_SIMPLE)
		outcome = step_simple(u, rule, was_activation);
	else if (rule->kind == CFI_ODD)
		outcome = step_odd(u, rule, was_activation);
	else if (rule->kind == CFI_END)
		u->regs.pc = 0;
	else if (info->map)
		outcome = step_fp(u, info, found_by, was_activation);
	else
		outcome = UNWIND_NO_MAP;
	u->regs.pc &= u->arch->code_mask;
	return outcome;
}

/* The outcome where Go calls C: its rows are wrong there, and have led nowhere. */
static enum unwind_outcome of_call_from_go(
    const struct unwinding *u, const struct unwind_frame *frame, enum unwind_outcome otherwise)
{
	struct go_switch found;

	return go_switch_at(u->in->maps, frame->pc + 1, &found) ? UNWIND_STACK_SWITCH
	    : go_realigned_at(u->in->maps, frame->pc + 1)       ? UNWIND_BAD_ROW
	                                                        : otherwise;
}

/* Compilers of C align the stack pointer before a call, so they make no such row for a return address. In
 * older versions of Go asmcgocall has such a row. It is wrong there: any word may be where it leads. */
static bool is_unaligned_call(const struct unwinding *u, const struct cfi_rule *rule, bool activation)
{
	return rule->kind == CFI_SIMPLE && !activation && rule->cfa_reg == u->arch->sp &&
	    rule->cfa_offset == 8;
}

enum unwind_outcome unwind_stack(
    const struct unwind_input *in, struct unwind_frame *frames, size_t max, size_t *count)
{
	struct unwinding u;
	enum unwind_step how = UNWIND_STEP_FIRST;
	enum unwind_outcome outcome;
	struct pc_info uncached, exact;
	bool activation = true, made_up = false;
	size_t n = 0;

	u.in = in;
	u.arch = in->arch;
	u.regs.pc = in->regs->pc;
	u.regs.known = in->regs->known;
	memcpy(u.regs.r, in->regs->r, in->arch->count * sizeof(u.regs.r[0]));
	u.bound = in->stack_address + in->stack_bytes;
	u.above = in->reaches_end              ? UNWIND_BAD_READ
	    : in->stack_bytes < in->stack_want ? UNWIND_NOT_PRESENT
	                                       : UNWIND_TRUNCATED;
	u.space = pc_space_of(in->maps, in->arch->e_machine);
	if (u.space.cache)
		pc_cache_prefetch(u.space.cache, in->stack_address, in->stack, in->stack_bytes);
	do {
		uint64_t pc = u.regs.pc - !activation;
		const struct pc_info *info = pc_space_look_up(&u.space, pc, &uncached);
		bool was_made_up = made_up;

		/* A frame found by frame pointer is known to follow a call, if its code can be read. */
		made_up = !activation && info->rule->kind == CFI_NONE && how != UNWIND_STEP_FP &&
		    starts_function(&u, u.regs.pc, &exact);
		if (made_up || (!activation && is_returned_to(info))) {
			pc = u.regs.pc;
			info = made_up ? &exact : pc_space_look_up(&u.space, pc, &uncached);
			activation = true;
		}
		if (!info->map && n > 0) {
			outcome = was_made_up ? UNWIND_COMPLETE
			                      : of_call_from_go(&u, &frames[n - 1], UNWIND_NO_MAP);
			break;
		}
		if (n == max) {
			outcome = UNWIND_TOO_DEEP;
			break;
		}
		add_frame(&frames[n++], info, pc, how, activation);
		if (made_up && lacks_return_address(&u, info->rule)) {
			outcome = UNWIND_COMPLETE;
			break;
		}
		const struct cfi_rule *rule = info->rule;
		const bool unaligned = is_unaligned_call(&u, rule, activation);
		outcome = step(&u, info, &how, &activation);
		/* A zero by such a row is asmcgocall's: other stacks end by a row of another kind. */
		if (outcome == UNWIND_COMPLETE && (unaligned || (!u.regs.pc && rule->kind == CFI_SIMPLE)))
			outcome = of_call_from_go(&u, &frames[n - 1], UNWIND_COMPLETE);
		if (u.space.cache && n <= PC_CACHE_TRAIL)
			u.space.cache->trail[n - 1] = u.regs.r[u.arch->sp];
	} while (outcome == UNWIND_COMPLETE && u.regs.pc);
	if (u.space.cache)
		u.space.cache->trail_count = (uint32_t)(n < PC_CACHE_TRAIL ? n : PC_CACHE_TRAIL);
	*count = n;
	return outcome;
}

/* ---- outcomes in words */

/* Only one copy: interned stacks compare markers by address. */
static const char guessed_marker[] = "[guessed]";

static const struct {
	const char *name, *marker;
} outcomes[UNWIND_COUNTS] = {
    [UNWIND_COMPLETE] = {"complete", NULL},
    [UNWIND_END_GUESSED] = {"end guessed", guessed_marker},
    [UNWIND_TRUNCATED] = {"truncated", "[truncated]"},
    [UNWIND_STACK_SWITCH] = {"stack switched", "[stack switched]"},
    [UNWIND_BAD_READ] = {"bad read", "[bad stack read]"},
    [UNWIND_BAD_ROW] = {"bad unwind row", "[bad unwind row]"},
    [UNWIND_LOOP] = {"loop", "[stack loop]"},
    [UNWIND_NO_MAP] = {"no mapping", "[unknown mapping]"},
    [UNWIND_NO_MODULE] = {"no module", "[unknown module]"},
    [UNWIND_NO_CFI] = {"no unwind rows", "[no unwind rows]"},
    [UNWIND_TOO_DEEP] = {"too deep", "[too deep]"},
    [UNWIND_UNREAD_CFI] = {"unwind rows not read", "[unwind rows not read]"},
    [UNWIND_NOT_PRESENT] = {"stack page not present", "[stack page not present]"},
    [UNWIND_GUESSED] = {"frames guessed", guessed_marker},
};

const char *unwind_outcome_name(enum unwind_outcome outcome)
{
	return (unsigned)outcome < UNWIND_COUNTS ? outcomes[outcome].name : "unknown";
}

const char *unwind_marker(enum unwind_outcome outcome)
{
	return (unsigned)outcome < UNWIND_COUNTS ? outcomes[outcome].marker : "[unknown]";
}

bool unwind_wants_maps(enum unwind_outcome outcome)
{
	return outcome == UNWIND_NO_MAP || outcome == UNWIND_NO_MODULE || outcome == UNWIND_NO_CFI;
}
