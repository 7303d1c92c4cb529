/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The second program whose stacks are recorded beside this file, for aarch64 alone: stacks that a signal
 * interrupted, in a function that keeps its return address in a register, with two kinds of code to which
 * the handler returns (the vdso's, whose rows lead astray, and musl's, which has none); and one that was
 * prepared for a function, which "returns" to the beginning of another. See record.c for the format, and
 * record.sh.
 */
#include "stack_head.h"

#define NOINLINE __attribute__((noinline))
#define STAY     __asm__ volatile("" ::: "memory")

enum { DUMP_MAX = 16384, SIGILL = 4, SA_SIGINFO = 4, SA_RESTORER = 0x04000000 };

static struct stack_head head;
static uint64_t truth[STACK_TRUTH_MAX];
static uint64_t stack_top;
static const char *name;

static long call(long number, long a, long b, long c, long d)
{
	register long x0 __asm__("x0") = a, x1 __asm__("x1") = b, x2 __asm__("x2") = c, x3 __asm__("x3") = d;
	register long x8 __asm__("x8") = number;
	__asm__ volatile("svc 0" : "+r"(x0) : "r"(x1), "r"(x2), "r"(x3), "r"(x8) : "memory");
	return x0;
}

static void put(const void *bytes, unsigned long n)
{
	call(64, 1, (long)bytes, (long)n, 0);
}

#define RETURNS_TO() ((uint64_t)__builtin_extract_return_addr(__builtin_return_address(0)))

/* The truth: what the frames above the innermost are; the first is filled in here. */
NOINLINE void take(uint32_t n_truth)
{
	uint64_t scratch;

	truth[0] = RETURNS_TO();
	__asm__ volatile(
	    "stp x19,x20,[%1,#152]; stp x21,x22,[%1,#168]; stp x23,x24,[%1,#184]; stp x25,x26,[%1,#200];"
	    "stp x27,x28,[%1,#216]; stp x29,x30,[%1,#232]; mov %0,sp; str %0,[%1,#248]; adr %0,0f; 0:"
	    : "=&r"(scratch)
	    : "r"(head.r)
	    : "memory");
	head.pc = scratch;
	uint64_t sp = head.r[31];
	head.known = (uint64_t)0x1fff << 19;
	head.e_machine = 183;
	head.magic = STACK_MAGIC;
	for (unsigned i = 0; i < sizeof(head.name); i++)
		head.name[i] = 0;
	for (unsigned i = 0; i + 1 < sizeof(head.name) && name[i]; i++)
		head.name[i] = name[i];
	head.n_truth = n_truth;
	head.stack_bytes = (uint32_t)(stack_top - sp);
	put(&head, sizeof(head));
	put(truth, n_truth * sizeof(truth[0]));
	put((const void *)sp, head.stack_bytes);
	STAY;
}

/* ---- interrupted by a signal */

/* The instruction that faults, in a leaf whose row says that the return address is in x30. */
__asm__(
    ".globl leaf; .type leaf,%function; leaf: .cfi_startproc; nop; .globl leaf_fault; leaf_fault: udf #0; "
    "ret;"
    ".cfi_endproc; .size leaf,.-leaf\n"
    /* As arch/arm64/kernel/vdso/sigreturn.S has it: rows along the frame record, from a nop before the code
     * on. */
    ".globl like_vdso; .cfi_startproc; .cfi_signal_frame; .cfi_def_cfa x29,0; .cfi_offset x29,0; .cfi_offset "
    "x30,8;"
    "nop; like_vdso: mov x8,#139; svc #0; .cfi_endproc\n"
    /* No rows at all, behind a function's last instruction. */
    ".globl like_musl; before_musl: .cfi_startproc; sub sp,sp,#64; .cfi_def_cfa_offset 64; add sp,sp,#64; "
    "ret;"
    ".cfi_endproc; like_musl: mov x8,#139; svc #0\n");
void leaf(void);
extern const char leaf_fault[], like_vdso[], like_musl[];

static uint64_t returns_to[8]; /* of those that called leaf, outermost last */
enum { RETURNS = 4 };
static const char *code;

NOINLINE void on_signal(long number, long info, unsigned char *context)
{
	unsigned n = 1;

	(void)number, (void)info;
	truth[n++] = (uint64_t)code;
	truth[n++] = (uint64_t)leaf_fault;
	for (unsigned i = 0; i < RETURNS; i++)
		truth[n++] = returns_to[i];
	take(n);
	*(uint64_t *)(context + 176 + 264) += 4; /* past the instruction */
	STAY;
}

/* Its frame is found by x29, as it was when leaf was interrupted. */
NOINLINE void calls_leaf(unsigned n)
{
	volatile char *bytes = __builtin_alloca(n);
	uint64_t after;

	returns_to[1] = RETURNS_TO();
	bytes[0] = 1;
	__asm__ volatile("adr %0,0f; str %0,[%1]; bl leaf; 0:"
	                 : "=&r"(after)
	                 : "r"(returns_to)
	                 : "x30", "memory");
	bytes[n - 1] = 2;
}

struct action {
	void *handler;
	unsigned long flags;
	const void *restorer;
	unsigned long mask;
};

NOINLINE void with_signal(const char *case_name, const char *restorer)
{
	struct action action = {
	    .handler = (void *)on_signal, .flags = SA_SIGINFO | SA_RESTORER, .restorer = restorer};

	name = case_name;
	code = restorer;
	returns_to[2] = RETURNS_TO();
	call(134, SIGILL, (long)&action, 0, 8);
	calls_leaf(100);
	STAY;
}

/* ---- on a stack of its own, as makecontext() prepares it */

static unsigned char other[8192] __attribute__((aligned(16)));
uint64_t back_word;

/* Its row says that the return address is in x30, and nobody has put one there. */
__asm__(
    ".globl begin; .type begin,%function; .balign 64; begin: .cfi_startproc; mov x0,x19; b fiber_end; "
    ".cfi_endproc;"
    ".size begin,.-begin\n"
    ".globl jump; .type jump,%function; jump: .cfi_startproc; stp x29,x30,[sp,#-16]!;"
    "mov x9,sp; str x9,[x0]; mov sp,x1; adr x30,begin; mov x29,#0; br x2; .cfi_endproc; .size jump,.-jump\n"
    ".globl fiber_end; fiber_end: adrp x0,back_word; ldr x0,[x0,#:lo12:back_word]; mov sp,x0;"
    "ldp x29,x30,[sp],#16; ret\n");
extern const char begin[];
void jump(uint64_t *save, void *stack, void (*function)(void));

NOINLINE void in_fiber(void)
{
	truth[1] = (uint64_t)begin;
	take(2);
	STAY;
}

NOINLINE void with_fiber(void)
{
	uint64_t top = stack_top;

	name = "prepared";
	stack_top = (uint64_t)other + sizeof(other);
	__asm__ volatile(
	    "" ::
	        : "x19", "x20", "x21", "x22", "x23", "x24", "x25", "x26", "x27", "x28", "memory");
	jump(&back_word, other + sizeof(other), in_fiber);
	stack_top = top;
}

void run(uint64_t top)
{
	stack_top = top;
	returns_to[3] = RETURNS_TO();
	with_signal("vdso", like_vdso);
	with_signal("musl", like_musl);
	with_fiber();
	call(94, 0, 0, 0, 0);
}

__asm__(
    ".globl _start; .type _start,%function; _start: .cfi_startproc; .cfi_undefined x30; mov x29,0; mov x30,0;"
    "add x0,sp,64; bl run; brk 0; .cfi_endproc; .size _start,.-_start");
