/* SPDX-License-Identifier: Apache-2.0 */
#include "sampler/unwind/cfi.h"

#include "pprof/table/array.h"
#include "pprof/table/index.h"
#include "pprof/text/clock.h"
#include "pprof/text/throttle.h"
#include "sampler/unwind/cfi_odd.h"
#include "sampler/unwind/cfi_section.h"

#include <dwarf.h>
#include <stdlib.h>
#include <string.h>

enum {
	SLOTS_FIRST = 256,
	/* Addresses come from hostile stacks. At the first limit the table is emptied; at the second no more
	 * rules are made. */
	SLOTS_MAX = 1 << 20,
	RULES_MAX = 1 << 18,
	CHUNK = 64,
	FAILED_WORK = 16 << 10, /* of a look-up that will be tried again (cfi.h) */
};

/* An address seen and its rule; rule is NULL in a free slot. */
struct slot {
	uint64_t vaddr;
	const struct cfi_rule *rule;
};

struct chunk {
	struct chunk *next;
	struct cfi_rule rule[CHUNK];
};

struct cfi {
	const struct regs_arch *arch;
	struct slot *slots;
	unsigned slot_bits;
	size_t used;
	/* Each rule is stored once; the chunks never move, so that caches may point into them. */
	struct chunk *chunks;
	const struct cfi_rule **known; /* found by their content; ids of the index: number + 1 */
	size_t known_count, known_capacity;
	struct index known_index;
	size_t rule_count, odd_count, odd_bytes;
	/* for the code to which signal handlers return; made at the first use */
	const struct cfi_rule *signal_rule;
	/* Opened when first needed. */
	struct cfi_section *eh_frame, *debug_frame;
	bool tried_eh_frame, tried_debug_frame;
	bool unread; /* a section has rows that are not read */
	struct cfi_memory *memory;
	uint64_t noted_bytes; /* in memory->held_bytes */
};

const struct cfi_rule cfi_no_rule = {.kind = CFI_NONE};
const struct cfi_rule cfi_unread_rule = {.kind = CFI_NONE};
static const struct cfi_rule end_rule = {.kind = CFI_END};

/* Slots and rules, which stay. */
static size_t own_bytes(const struct cfi *cfi)
{
	return ((size_t)1 << cfi->slot_bits) * sizeof(struct slot) +
	    (cfi->rule_count + CHUNK - 1) / CHUNK * sizeof(struct chunk) +
	    cfi->known_capacity * sizeof(*cfi->known) + index_bytes(&cfi->known_index) + cfi->odd_bytes;
}

static size_t copied_bytes(const struct cfi *cfi)
{
	return (cfi->eh_frame ? cfi_section_bytes(cfi->eh_frame) : 0) +
	    (cfi->debug_frame ? cfi_section_bytes(cfi->debug_frame) : 0);
}

static uint64_t left_bytes(const struct cfi_memory *memory)
{
	return memory->held_bytes < memory->max_bytes ? memory->max_bytes - memory->held_bytes : 0;
}

static void note_bytes(struct cfi *cfi, uint64_t now_bytes)
{
	cfi->memory->held_bytes += now_bytes - cfi->noted_bytes;
	cfi->noted_bytes = now_bytes;
}

static void forget_copies(struct cfi *cfi)
{
	cfi_section_close(cfi->eh_frame);
	cfi_section_close(cfi->debug_frame);
	cfi->eh_frame = cfi->debug_frame = NULL;
	cfi->tried_eh_frame = cfi->tried_debug_frame = false;
	note_bytes(cfi, own_bytes(cfi));
}

struct cfi *cfi_new(uint16_t e_machine, struct cfi_memory *memory)
{
	struct cfi *cfi = calloc(1, sizeof(*cfi));

	if (!cfi)
		return NULL;
	elf_version(EV_CURRENT);
	cfi->memory = memory;
	cfi->arch = regs_arch_find(e_machine);
	cfi->slot_bits = __builtin_ctz(SLOTS_FIRST);
	cfi->slots = calloc(SLOTS_FIRST, sizeof(*cfi->slots));
	if (!cfi->slots || !cfi->arch) {
		cfi_free(cfi);
		return NULL;
	}
	note_bytes(cfi, own_bytes(cfi));
	return cfi;
}

void cfi_free(struct cfi *cfi)
{
	struct chunk *next;

	if (!cfi)
		return;
	forget_copies(cfi);
	note_bytes(cfi, 0);
	for (struct chunk *chunk = cfi->chunks; chunk; chunk = next) {
		next = chunk->next;
		for (unsigned i = 0; i < CHUNK; i++)
			if (chunk->rule[i].kind == CFI_ODD)
				cfi_odd_free((struct cfi_odd *)chunk->rule[i].odd);
		free(chunk);
	}
	free(cfi->known);
	index_fini(&cfi->known_index);
	free(cfi->slots);
	free(cfi);
}

static inline size_t slot_index(const struct cfi *cfi, uint64_t vaddr)
{
	/* Seeded, because targets choose the addresses: runs of full slots would take minutes to search. */
	return index_mix(index_seed(), vaddr) >> (64 - cfi->slot_bits);
}

static struct slot *find_slot(const struct cfi *cfi, uint64_t vaddr)
{
	size_t mask = ((size_t)1 << cfi->slot_bits) - 1;
	size_t i = slot_index(cfi, vaddr);

	while (cfi->slots[i].rule && cfi->slots[i].vaddr != vaddr)
		i = (i + 1) & mask;
	return &cfi->slots[i];
}

static bool grow_slots(struct cfi *cfi)
{
	struct slot *old = cfi->slots;
	size_t n = (size_t)1 << cfi->slot_bits;

	if (n >= SLOTS_MAX || own_bytes(cfi) >= left_bytes(cfi->memory)) {
		memset(old, 0, n * sizeof(*old));
		cfi->used = 0;
		return true;
	}
	cfi->slots = calloc(2 * n, sizeof(*old));
	if (!cfi->slots) {
		cfi->slots = old;
		return false;
	}
	cfi->slot_bits++;
	for (size_t i = 0; i < n; i++)
		if (old[i].rule)
			*find_slot(cfi, old[i].vaddr) = old[i];
	free(old);
	return true;
}

/* Room for one more rule, zeroed; NULL: out of memory or too many. */
static struct cfi_rule *add_rule(struct cfi *cfi)
{
	if (cfi->rule_count >= RULES_MAX || own_bytes(cfi) >= left_bytes(cfi->memory))
		return NULL;
	if (cfi->rule_count % CHUNK == 0) {
		struct chunk *chunk = calloc(1, sizeof(*chunk));

		if (!chunk)
			return NULL;
		chunk->next = cfi->chunks;
		cfi->chunks = chunk;
	}
	return &cfi->chunks->rule[cfi->rule_count++ % CHUNK];
}

static uint32_t hash_rule(const struct cfi_rule *rule)
{
	uint64_t hash = index_seed();

	if (rule->kind == CFI_ODD)
		return index_fold(cfi_odd_mix(index_mix(hash, rule->signal_frame), rule->odd));
	return index_fold(index_mix_bytes(hash, rule, sizeof(*rule)));
}

static bool is_equal(const struct cfi_rule *a, const struct cfi_rule *b)
{
	if (a->kind != CFI_ODD || b->kind != CFI_ODD)
		return memcmp(a, b, sizeof(*a)) == 0;
	return a->signal_frame == b->signal_frame && cfi_odd_equal(a->odd, b->odd);
}

/* The stored rule with this content. A new rule takes the operations of `odd`. */
static const struct cfi_rule *intern(struct cfi *cfi, const struct cfi_rule *rule)
{
	uint32_t hash = hash_rule(rule), id;
	size_t cursor = index_start(hash);

	while ((id = index_next(&cfi->known_index, hash, &cursor)))
		if (is_equal(cfi->known[id - 1], rule))
			return cfi->known[id - 1];
	struct cfi_rule *added = NULL;
	if (array_reserve(&cfi->known, &cfi->known_capacity, cfi->known_count + 1, sizeof(*cfi->known)) == 0)
		added = add_rule(cfi);
	if (!added)
		return &cfi_unread_rule;
	*added = *rule;
	/* If there is no memory for the index, the rule is valid all the same, but may be made a second
	 * time. */
	if (index_add(&cfi->known_index, hash, (uint32_t)cfi->known_count + 1) == 0)
		cfi->known[cfi->known_count++] = added;
	return added;
}

/* Where the caller's value of a register is. */
enum saved { SAVED_NOT, SAVED_AT_OFFSET, SAVED_AS_CFA, SAVED_UNDEFINED, SAVED_OTHERWISE };

/* Sorts what libdw says about a register into the plain cases; *offset from the CFA for SAVED_AT_OFFSET. */
static enum saved how_saved(Dwarf_Frame *frame, int column, int32_t *offset)
{
	Dwarf_Op scratch[3], *ops;
	size_t n;

	if (dwarf_frame_register(frame, column, scratch, &ops, &n) != 0)
		return SAVED_OTHERWISE;
	if (n == 0)
		return ops == scratch ? SAVED_UNDEFINED : SAVED_NOT;
	if (ops[0].atom != DW_OP_call_frame_cfa)
		return SAVED_OTHERWISE;
	*offset = 0;
	if (n == 1)
		return SAVED_AT_OFFSET;
	if (n == 2 && ops[1].atom == DW_OP_stack_value)
		return SAVED_AS_CFA;
	if (n != 2 || ops[1].atom != DW_OP_plus_uconst || (int64_t)ops[1].number != (int32_t)ops[1].number)
		return SAVED_OTHERWISE;
	*offset = (int32_t)ops[1].number;
	return SAVED_AT_OFFSET;
}

/* Finds one range that holds all places that the unwinder reads, so that the unwinder checks only once.
 * Registers that are not saved get a harmless place to read. */
static void find_extent(const struct regs_arch *arch, struct cfi_rule *rule)
{
	int32_t lowest = -8, highest = -8;

	for (unsigned i = 0; i <= arch->tracked_count; i++) {
		bool is_ra = i == arch->tracked_count;

		if (is_ra ? rule->ra_in_register : !(rule->saved >> i & 1)) {
			*(is_ra ? &rule->ra_offset : &rule->offset[i]) = -8;
			continue;
		}
		int32_t offset = is_ra ? rule->ra_offset : rule->offset[i];
		lowest = offset < lowest ? offset : lowest;
		highest = offset > highest ? offset : highest;
	}
	if (highest <= -8 && lowest > -65536)
		rule->compact_bytes = (uint16_t)(0 - lowest);
}

/* True if FRAME fits the plain form. */
static bool compile_simple(
    const struct regs_arch *arch, Dwarf_Frame *frame, int ra_column, struct cfi_rule *rule)
{
	Dwarf_Op *ops;
	size_t n;
	int32_t ignored;

	if (dwarf_frame_cfa(frame, &ops, &n) != 0 || n != 1 || ops[0].atom != DW_OP_bregx ||
	    ops[0].number >= arch->count || (int64_t)ops[0].number2 != (int32_t)ops[0].number2)
		return false;
	rule->kind = CFI_SIMPLE;
	rule->cfa_reg = (uint8_t)ops[0].number;
	rule->cfa_offset = (int32_t)ops[0].number2;
	switch (how_saved(frame, ra_column, &rule->ra_offset)) {
	case SAVED_AT_OFFSET:
		break;
	case SAVED_NOT:
		rule->ra_in_register = true;
		if (arch->ra_in_register && ra_column == arch->ra)
			break;
		return false;
	default:
		return false;
	}
	for (unsigned i = 0; i < arch->tracked_count; i++) {
		/*
		 * Undefined is treated as unchanged: elfutils' defaults for x86-64 name register 0 instead of
		 * rbx (3), so that every row that does not save rbx calls it undefined.
		 */
		enum saved how = how_saved(frame, arch->tracked[i], &rule->offset[i]);

		if (how == SAVED_AT_OFFSET)
			rule->saved |= (uint16_t)(1 << i);
		else if (how != SAVED_NOT && how != SAVED_UNDEFINED)
			return false;
	}
	enum saved sp = how_saved(frame, arch->sp, &ignored);
	find_extent(arch, rule);
	return sp == SAVED_AS_CFA || sp == SAVED_NOT || sp == SAVED_UNDEFINED;
}

/* Takes ODD; NULL is allowed. */
static const struct cfi_rule *add_odd(struct cfi *cfi, struct cfi_odd *odd, bool signal_frame)
{
	const struct cfi_rule *rule;

	if (!odd)
		return &cfi_no_rule;
	rule = intern(cfi, &(struct cfi_rule){.kind = CFI_ODD, .signal_frame = signal_frame, .odd = odd});
	if (rule->kind != CFI_ODD || rule->odd != odd) {
		cfi_odd_free(odd);
		return rule;
	}
	cfi->odd_count++;
	cfi->odd_bytes += sizeof(*odd) + odd->op_count * sizeof(*odd->ops);
	return rule;
}

static const struct cfi_rule *compile_odd(
    struct cfi *cfi, Dwarf_Frame *frame, int ra_column, bool signal_frame)
{
	return add_odd(cfi, cfi_odd_new(cfi->arch, frame, ra_column), signal_frame);
}

static const struct cfi_rule *compile(struct cfi *cfi, Dwarf_Frame *frame)
{
	struct cfi_rule rule = {0};
	Dwarf_Addr start, end;
	bool signal_frame;
	int32_t ignored;
	int ra_column = dwarf_frame_info(frame, &start, &end, &signal_frame);

	if (ra_column < 0)
		return &cfi_no_rule;
	if (how_saved(frame, ra_column, &ignored) == SAVED_UNDEFINED)
		return &end_rule;
	if (!compile_simple(cfi->arch, frame, ra_column, &rule))
		return compile_odd(cfi, frame, ra_column, signal_frame);
	rule.signal_frame = signal_frame;
	return intern(cfi, &rule);
}

static Dwarf_Frame *find_frame(struct cfi *cfi, struct cfi_reading *reading, uint64_t vaddr)
{
	Dwarf_Frame *frame = NULL;

	if (!cfi->tried_eh_frame) {
		cfi->eh_frame = cfi_section_open_table(reading);
		if (!cfi->eh_frame && !reading->failed)
			cfi->eh_frame = cfi_section_open_eh_frame(reading);
		cfi->tried_eh_frame = cfi->eh_frame || !reading->failed;
	}
	if (cfi->eh_frame)
		frame = cfi_section_frame(cfi->eh_frame, reading, vaddr);
	if (frame || reading->failed)
		return frame;
	if (!cfi->tried_debug_frame) {
		cfi->debug_frame = cfi_section_open_debug_frame(reading);
		cfi->tried_debug_frame = cfi->debug_frame || !reading->failed;
	}
	cfi->unread |= reading->unread;
	return cfi->debug_frame ? cfi_section_frame(cfi->debug_frame, reading, vaddr) : NULL;
}

/* The rule for VADDR if it is in code to which signal handlers return (the instructions tell), else NULL. */
static const struct cfi_rule *find_signal_rule(struct cfi *cfi, struct cfi_reading *reading, uint64_t vaddr)
{
	const struct module_file *file = reading->file;
	const struct signal_frame *frame = signal_frame_of(cfi->arch->e_machine);
	uint64_t start = signal_frame_code_at(vaddr), offset;
	uint8_t code[SIGNAL_FRAME_CODE_BYTES];

	if (!frame || !module_file_offset(file, start, sizeof(code), &offset) || offset > file->bytes ||
	    sizeof(code) > file->bytes - offset)
		return NULL;
	if (module_file_read(file, code, sizeof(code), offset) != 0) {
		reading->failed = true;
		return NULL;
	}
	if (!signal_frame_is_code(code))
		return NULL;
	if (cfi->signal_rule)
		return cfi->signal_rule;
	const struct cfi_rule *rule = add_odd(cfi, cfi_odd_new_signal(cfi->arch, frame), true);
	if (rule->kind != CFI_ODD)
		return &cfi_unread_rule;
	return cfi->signal_rule = rule;
}

static const struct cfi_rule *make_rule(struct cfi *cfi, struct cfi_reading *reading, uint64_t vaddr)
{
	const struct cfi_rule *rule = find_signal_rule(cfi, reading, vaddr);
	Dwarf_Frame *frame = rule || reading->failed ? NULL : find_frame(cfi, reading, vaddr);

	if (!rule)
		rule = frame                         ? compile(cfi, frame)
		    : reading->failed || cfi->unread ? &cfi_unread_rule
		                                     : &cfi_no_rule;
	free(frame);
	if (rule == &cfi_unread_rule)
		return rule;
	/* At most half full, so that a probe is short. */
	if (2 * (cfi->used + 1) <= (size_t)1 << cfi->slot_bits || grow_slots(cfi)) {
		*find_slot(cfi, vaddr) = (struct slot){vaddr, rule};
		cfi->used++;
	}
	return rule;
}

bool cfi_work_allows(struct throttle *work)
{
	static const struct throttle_rate rate = {
	    .burst = CFI_WORK_BURST, .units = CFI_WORK_PER_US, .step_ns = 1000};

	return throttle_allows(work, &rate, clock_now_ns());
}

const struct cfi_rule *cfi_known(const struct cfi *cfi, uint64_t vaddr)
{
	return find_slot(cfi, vaddr)->rule;
}

const struct cfi_rule *cfi_find(
    struct cfi *cfi, const struct module_file *file, uint64_t vaddr, struct throttle *budget)
{
	struct cfi_reading reading = {.file = file, .bytes_max = left_bytes(cfi->memory)};
	const struct cfi_rule *rule = cfi_known(cfi, vaddr);

	if (rule)
		return rule;
	if (budget && !cfi_work_allows(budget))
		return &cfi_unread_rule;
	rule = make_rule(cfi, &reading, vaddr);
	note_bytes(cfi, own_bytes(cfi) + copied_bytes(cfi));
	if (cfi->noted_bytes >= left_bytes(cfi->memory))
		forget_copies(cfi);
	if (budget)
		throttle_spend(budget, reading.work + (reading.failed ? FAILED_WORK : 0));
	return rule;
}

void cfi_leave(struct cfi *cfi)
{
	forget_copies(cfi);
}

void cfi_measure(const struct cfi *cfi, struct cfi_usage *usage)
{
	memset(usage, 0, sizeof(*usage));
	if (!cfi)
		return;
	usage->addresses = cfi->used;
	usage->rules = cfi->rule_count;
	usage->odd = cfi->odd_count;
	usage->own_bytes = own_bytes(cfi);
	usage->copied_bytes = copied_bytes(cfi);
}
