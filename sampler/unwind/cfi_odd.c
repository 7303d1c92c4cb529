/* SPDX-License-Identifier: Apache-2.0 */
#include "sampler/unwind/cfi_odd.h"

#include "pprof/table/index.h"

#include <dwarf.h>
#include <stdlib.h>
#include <string.h>

static bool known_atom(const Dwarf_Op *op)
{
	switch (op->atom) {
	case DW_OP_deref_size:
		return op->number == 1 || op->number == 2 || op->number == 4 || op->number == 8;
		/* clang-format off */
	case DW_OP_addr: case DW_OP_deref: case DW_OP_const1u: case DW_OP_const1s: case DW_OP_const2u: case
	DW_OP_const2s: case DW_OP_const4u: case DW_OP_const4s: case DW_OP_const8u: case DW_OP_const8s: case
	DW_OP_constu: case DW_OP_consts: case DW_OP_dup: case DW_OP_drop: case DW_OP_over: case DW_OP_pick:
	case DW_OP_swap: case DW_OP_rot: case DW_OP_abs: case DW_OP_and: case DW_OP_div: case DW_OP_minus:
	case DW_OP_mod: case DW_OP_mul: case DW_OP_neg: case DW_OP_not: case DW_OP_or: case DW_OP_plus:
	case DW_OP_plus_uconst: case DW_OP_shl: case DW_OP_shr: case DW_OP_shra: case DW_OP_xor: case
	DW_OP_eq: case DW_OP_ge: case DW_OP_gt: case DW_OP_le: case DW_OP_lt: case DW_OP_ne: case
	DW_OP_bregx: case DW_OP_nop: case DW_OP_call_frame_cfa:
		/* clang-format on */
		return true;
	default:
		return (op->atom >= DW_OP_lit0 && op->atom <= DW_OP_lit31) ||
		    (op->atom >= DW_OP_breg0 && op->atom <= DW_OP_breg31);
	}
}

static bool add_ops(struct cfi_odd *odd, struct cfi_odd_place *place, const Dwarf_Op *ops, size_t n)
{
	struct cfi_odd_op *grown;

	if (n > (size_t)(CFI_ODD_OPS_MAX - odd->op_count))
		return false;
	for (size_t i = 0; i < n; i++)
		if (!known_atom(&ops[i]))
			return false;
	grown = realloc(odd->ops, (odd->op_count + n) * sizeof(*grown));
	if (!grown)
		return false;
	odd->ops = grown;
	place->first = odd->op_count;
	place->count = (uint16_t)n;
	for (size_t i = 0; i < n; i++) {
		struct cfi_odd_op *op = &odd->ops[odd->op_count++];

		memset(op, 0, sizeof(*op)); /* the padding is compared, too */
		op->atom = ops[i].atom;
		op->number = ops[i].number;
		op->number2 = ops[i].number2;
	}
	return true;
}

/* OPS: the result of dwarf_frame_register(). SCRATCH: the array that it was given. */
static bool compile_place(
    struct cfi_odd *odd, struct cfi_odd_place *place, const Dwarf_Op *ops, size_t n, const Dwarf_Op *scratch)
{
	bool is_value = n > 0 && ops[n - 1].atom == DW_OP_stack_value;

	if (n == 0) {
		place->how = ops == scratch ? CFI_ODD_UNKNOWN : CFI_ODD_SAME;
		return true;
	}
	if (n == 1 &&
	    (ops[0].atom == DW_OP_regx || (ops[0].atom >= DW_OP_reg0 && ops[0].atom <= DW_OP_reg31))) {
		place->how = CFI_ODD_REGISTER;
		place->offset = ops[0].atom == DW_OP_regx ? (int64_t)ops[0].number : ops[0].atom - DW_OP_reg0;
		return true;
	}
	n -= is_value;
	if (n >= 1 && n <= 2 && ops[0].atom == DW_OP_call_frame_cfa &&
	    (n == 1 || ops[1].atom == DW_OP_plus_uconst)) {
		place->how = is_value ? CFI_ODD_OFFSET : CFI_ODD_AT_OFFSET;
		place->offset = n == 2 ? (int64_t)ops[1].number : 0;
		return true;
	}
	place->how = is_value ? CFI_ODD_EXPRESSION : CFI_ODD_AT_EXPRESSION;
	return add_ops(odd, place, ops, n);
}

static bool compile_cfa(struct cfi_odd *odd, const struct regs_arch *arch, Dwarf_Frame *frame)
{
	Dwarf_Op *ops;
	size_t n;

	if (dwarf_frame_cfa(frame, &ops, &n) != 0 || n == 0)
		return false;
	if (n == 1 && ops[0].atom == DW_OP_bregx && ops[0].number < arch->count) {
		odd->cfa.how = CFI_ODD_OFFSET;
		odd->cfa_reg = (uint8_t)ops[0].number;
		odd->cfa.offset = (int64_t)ops[0].number2;
		return true;
	}
	odd->cfa.how = CFI_ODD_EXPRESSION;
	return add_ops(odd, &odd->cfa, ops, n - (ops[n - 1].atom == DW_OP_stack_value));
}

struct cfi_odd *cfi_odd_new(const struct regs_arch *arch, Dwarf_Frame *frame, int ra_column)
{
	struct cfi_odd *odd = calloc(1, sizeof(*odd));
	Dwarf_Op scratch[3], *ops;
	bool ok;
	size_t n;

	if (!odd)
		return NULL;
	ok = compile_cfa(odd, arch, frame) &&
	    dwarf_frame_register(frame, ra_column, scratch, &ops, &n) == 0 &&
	    compile_place(odd, &odd->ra, ops, n, scratch);
	for (int i = 0; ok && i < arch->count; i++)
		ok = dwarf_frame_register(frame, i, scratch, &ops, &n) == 0 &&
		    compile_place(odd, &odd->reg[i], ops, n, scratch);
	if (!ok) {
		cfi_odd_free(odd);
		return NULL;
	}
	/* As in cfi.c: a register that a callee must restore is not lost if the row has no rule for it. */
	for (unsigned i = 0; i < arch->tracked_count; i++)
		if (odd->reg[arch->tracked[i]].how == CFI_ODD_UNKNOWN)
			odd->reg[arch->tracked[i]].how = CFI_ODD_SAME;
	return odd;
}

struct cfi_odd *cfi_odd_new_signal(const struct regs_arch *arch, const struct signal_frame *frame)
{
	struct cfi_odd *odd = calloc(1, sizeof(*odd));

	if (!odd)
		return NULL;
	odd->returned_to = true;
	odd->cfa = (struct cfi_odd_place){.how = CFI_ODD_OFFSET};
	odd->cfa_reg = arch->sp;
	odd->ra = (struct cfi_odd_place){.how = CFI_ODD_AT_OFFSET, .offset = frame->pc_at};
	for (int i = 0; i < arch->count; i++)
		odd->reg[i].how = CFI_ODD_UNKNOWN;
	for (int i = 0; i < frame->count; i++)
		odd->reg[i] =
		    (struct cfi_odd_place){.how = CFI_ODD_AT_OFFSET, .offset = frame->general_at + 8 * i};
	odd->reg[arch->sp] = (struct cfi_odd_place){.how = CFI_ODD_AT_OFFSET, .offset = frame->sp_at};
	return odd;
}

void cfi_odd_free(struct cfi_odd *odd)
{
	if (odd)
		free(odd->ops);
	free(odd);
}

/* All members in front of the pointer are plain values, with zeros between them. */
enum { VALUE_BYTES = offsetof(struct cfi_odd, ops) };

bool cfi_odd_equal(const struct cfi_odd *a, const struct cfi_odd *b)
{
	return memcmp(a, b, VALUE_BYTES) == 0 &&
	    (a->op_count == 0 || memcmp(a->ops, b->ops, a->op_count * sizeof(*a->ops)) == 0);
}

uint64_t cfi_odd_mix(uint64_t hash, const struct cfi_odd *odd)
{
	return index_mix_bytes(
	    index_mix_bytes(hash, odd, VALUE_BYTES), odd->ops, odd->op_count * sizeof(*odd->ops));
}

/* What an evaluation works on. */
struct machine {
	const struct regs_arch *arch;
	const struct regs *regs;
	cfi_odd_read *read;
	void *context;
	uint64_t cfa, missing;
	uint64_t stack[CFI_ODD_STACK_MAX];
	unsigned depth;
};

static bool load(struct machine *m, uint64_t address, unsigned n, uint64_t *value)
{
	if (m->read(m->context, address, n, value))
		return true;
	m->missing = address;
	return false;
}

static bool push(struct machine *m, uint64_t value)
{
	if (m->depth == CFI_ODD_STACK_MAX)
		return false;
	m->stack[m->depth++] = value;
	return true;
}

static bool push_register(struct machine *m, uint64_t number, uint64_t offset)
{
	if (number >= m->arch->count || !(m->regs->known >> number & 1))
		return false;
	return push(m, m->regs->r[number] + offset);
}

/* Operations with two operands: B is the top of the stack, A is below it. */
static bool binary(uint8_t atom, uint64_t a, uint64_t b, uint64_t *value)
{
	int64_t sa = (int64_t)a, sb = (int64_t)b;

	switch (atom) {
		/* clang-format off */
	case DW_OP_and: *value = a & b; return true;
	case DW_OP_or: *value = a | b; return true;
	case DW_OP_xor: *value = a ^ b; return true;
	case DW_OP_plus: *value = a + b; return true;
	case DW_OP_minus: *value = a - b; return true;
	case DW_OP_mul: *value = a * b; return true;
	case DW_OP_shl: *value = b < 64 ? a << b : 0; return true;
	case DW_OP_shr: *value = b < 64 ? a >> b : 0; return true;
	case DW_OP_shra: *value = (uint64_t)(b < 63 ? sa >> b : sa < 0 ? -1 : 0); return true;
	case DW_OP_eq: *value = sa == sb; return true;
	case DW_OP_ne: *value = sa != sb; return true;
	case DW_OP_ge: *value = sa >= sb; return true;
	case DW_OP_gt: *value = sa > sb; return true;
	case DW_OP_le: *value = sa <= sb; return true;
	case DW_OP_lt: *value = sa < sb; return true;
		/* clang-format on */
	case DW_OP_div:
		if (b == 0)
			return false;
		*value = sb == -1 ? 0 - a : (uint64_t)(sa / sb);
		return true;
	case DW_OP_mod:
		if (b == 0)
			return false;
		*value = a % b;
		return true;
	default:
		return false;
	}
}

/* Operations that work on the stack alone. */
static bool stack_op(struct machine *m, const struct cfi_odd_op *op)
{
	uint64_t *top = m->depth ? &m->stack[m->depth - 1] : NULL, swap;

	if (!top)
		return false;
	switch (op->atom) {
	case DW_OP_dup:
		return push(m, *top);
	case DW_OP_drop:
		m->depth--;
		return true;
	case DW_OP_over:
		return m->depth >= 2 && push(m, top[-1]);
	case DW_OP_pick:
		return op->number < m->depth && push(m, top[-(int64_t)op->number]);
	case DW_OP_swap:
		if (m->depth < 2)
			return false;
		swap = top[0], top[0] = top[-1], top[-1] = swap;
		return true;
	case DW_OP_rot:
		if (m->depth < 3)
			return false;
		swap = top[0], top[0] = top[-1], top[-1] = top[-2], top[-2] = swap;
		return true;
	case DW_OP_abs:
		*top = (int64_t)*top < 0 ? 0 - *top : *top;
		return true;
	case DW_OP_neg:
		*top = 0 - *top;
		return true;
	case DW_OP_not:
		*top = ~*top;
		return true;
	case DW_OP_plus_uconst:
		*top += op->number;
		return true;
	case DW_OP_deref:
		return load(m, *top, 8, top);
	case DW_OP_deref_size:
		return load(m, *top, (unsigned)op->number, top);
	default:
		if (m->depth < 2)
			return false;
		m->depth--;
		return binary(op->atom, top[-1], top[0], &top[-1]);
	}
}

static bool run_op(struct machine *m, const struct cfi_odd_op *op)
{
	if (op->atom >= DW_OP_lit0 && op->atom <= DW_OP_lit31)
		return push(m, op->atom - DW_OP_lit0);
	if (op->atom >= DW_OP_breg0 && op->atom <= DW_OP_breg31)
		return push_register(m, op->atom - DW_OP_breg0, op->number);
	switch (op->atom) {
		/* clang-format off */
	case DW_OP_addr: case DW_OP_const1u: case DW_OP_const1s: case DW_OP_const2u: case DW_OP_const2s:
	case DW_OP_const4u: case DW_OP_const4s: case DW_OP_const8u: case DW_OP_const8s: case DW_OP_constu:
	case DW_OP_consts:
		/* clang-format on */
		return push(m, op->number);
	case DW_OP_bregx:
		return push_register(m, op->number, op->number2);
	case DW_OP_call_frame_cfa:
		return push(m, m->cfa);
	case DW_OP_nop:
		return true;
	default:
		return stack_op(m, op);
	}
}

static bool run(
    struct machine *m, const struct cfi_odd *odd, const struct cfi_odd_place *place, uint64_t *value)
{
	m->depth = 0;
	for (unsigned i = 0; i < place->count; i++)
		if (!run_op(m, &odd->ops[place->first + i]))
			return false;
	if (!m->depth)
		return false;
	*value = m->stack[m->depth - 1];
	return true;
}

/* Reads a saved register from memory. A word below the stack pointer was popped already: the register has its
 * value again. */
static bool load_saved(struct machine *m, uint64_t address, bool known, uint64_t *value)
{
	if (address < m->regs->r[m->arch->sp])
		return known;
	return load(m, address, 8, value);
}

/* *VALUE is the register's present value on entry. False: the register is lost. */
static bool resolve(struct machine *m, const struct cfi_odd *odd, const struct cfi_odd_place *place,
    bool known, uint64_t *value)
{
	uint64_t address;

	switch (place->how) {
	case CFI_ODD_SAME:
		return known;
	case CFI_ODD_AT_OFFSET:
		return load_saved(m, m->cfa + (uint64_t)place->offset, known, value);
	case CFI_ODD_OFFSET:
		*value = m->cfa + (uint64_t)place->offset;
		return true;
	case CFI_ODD_REGISTER:
		if ((uint64_t)place->offset >= m->arch->count || !(m->regs->known >> place->offset & 1))
			return false;
		*value = m->regs->r[place->offset];
		return true;
	case CFI_ODD_AT_EXPRESSION:
		return run(m, odd, place, &address) && load_saved(m, address, known, value);
	case CFI_ODD_EXPRESSION:
		return run(m, odd, place, value);
	default:
		return false;
	}
}

bool cfi_odd_step(const struct cfi_odd *odd, const struct regs_arch *arch, struct regs *regs,
    cfi_odd_read *read, void *context, uint64_t *cfa, uint64_t *missing)
{
	struct machine m = {.arch = arch, .regs = regs, .read = read, .context = context};
	struct regs caller = *regs;
	bool ok;

	*missing = 0;
	if (odd->cfa.how == CFI_ODD_OFFSET) {
		ok = regs->known >> odd->cfa_reg & 1;
		m.cfa = regs->r[odd->cfa_reg] + (uint64_t)odd->cfa.offset;
	} else {
		ok = run(&m, odd, &odd->cfa, &m.cfa);
	}
	/* A return address has no present value to fall back on, unless it is in a register. */
	caller.pc = regs->r[arch->ra];
	if (odd->ra.how == CFI_ODD_AT_OFFSET)
		ok = ok && load(&m, m.cfa + (uint64_t)odd->ra.offset, 8, &caller.pc);
	else if (odd->ra.how == CFI_ODD_AT_EXPRESSION)
		ok = ok && run(&m, odd, &odd->ra, &caller.pc) && load(&m, caller.pc, 8, &caller.pc);
	else
		ok = ok && resolve(&m, odd, &odd->ra, regs->known >> arch->ra & 1, &caller.pc);
	if (!ok) {
		*missing = m.missing;
		return false;
	}
	for (unsigned i = 0; i < arch->count; i++) {
		uint64_t bit = UINT64_C(1) << i;

		if (resolve(&m, odd, &odd->reg[i], regs->known & bit, &caller.r[i]))
			caller.known |= bit;
		else
			caller.known &= ~bit;
	}
	if (odd->reg[arch->sp].how == CFI_ODD_SAME || odd->reg[arch->sp].how == CFI_ODD_UNKNOWN) {
		caller.r[arch->sp] = m.cfa;
		caller.known |= UINT64_C(1) << arch->sp;
	}
	*regs = caller;
	*cfa = m.cfa;
	return caller.known >> arch->sp & 1;
}
