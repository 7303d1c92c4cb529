/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The program whose stacks are recorded beside this file, for x86-64 and aarch64: no libc, so that a few
 * kilobytes are the whole of it. It calls itself in all ways that unwind rows tell apart, copies registers
 * and stack at the bottom, and writes them down with the return addresses as each function saw its own. See
 * record.sh.
 *
 * A record: struct head, n_truth words (return addresses, innermost first), stack_bytes bytes.
 */
#include "stack_head.h"

#define NOINLINE __attribute__((noinline))
#define STAY     __asm__ volatile("" ::: "memory")
#define ENTER()  (truth[n_truth++] = (uint64_t)__builtin_extract_return_addr(__builtin_return_address(0)))
#define LEAVE()            \
	do {               \
		STAY;      \
		n_truth--; \
	} while (0)

enum { DUMP_MAX = 16384 };

static uint64_t truth[STACK_TRUTH_MAX];
static unsigned n_truth;
static uint64_t stack_top;
static struct stack_head head;

static void put(const void *bytes, unsigned long n)
{
#ifdef __x86_64__
	unsigned long result = 1;
	__asm__ volatile("syscall" : "+a"(result) : "D"(1), "S"(bytes), "d"(n) : "rcx", "r11", "memory");
#else
	register unsigned long x0 __asm__("x0") = 1, x1 __asm__("x1") = (unsigned long)bytes,
	                          x2 __asm__("x2") = n;
	register unsigned long x8 __asm__("x8") = 64;
	__asm__ volatile("svc 0" : "+r"(x0) : "r"(x1), "r"(x2), "r"(x8) : "memory");
#endif
}

static void leave(void)
{
#ifdef __x86_64__
	__asm__ volatile("syscall" : : "a"(231), "D"(0));
#else
	__asm__ volatile("mov x8, 94; mov x0, 0; svc 0" : : : "x0", "x8");
#endif
}

NOINLINE void take(const char *name)
{
	ENTER();
#ifdef __x86_64__
	__asm__ volatile(
	    "mov %%rbx,24(%1); mov %%rbp,48(%1); mov %%rsp,56(%1); mov %%r12,96(%1); mov %%r13,104(%1);"
	    "mov %%r14,112(%1); mov %%r15,120(%1); lea 0f(%%rip),%0; 0:"
	    : "=&r"(head.pc)
	    : "r"(head.r)
	    : "memory");
	uint64_t sp = head.r[7];
	head.known = 1 << 3 | 1 << 6 | 1 << 7 | 0xf << 12;
	head.e_machine = 62;
#else
	uint64_t scratch;
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
#endif
	head.magic = STACK_MAGIC;
	for (unsigned i = 0; i < sizeof(head.name); i++)
		head.name[i] = 0;
	for (unsigned i = 0; i + 1 < sizeof(head.name) && name[i]; i++)
		head.name[i] = name[i];
	head.n_truth = n_truth;
	head.cut = stack_top - sp > DUMP_MAX;
	head.stack_bytes = head.cut ? DUMP_MAX : (uint32_t)(stack_top - sp);
	put(&head, sizeof(head));
	for (unsigned i = n_truth; i-- > 0;)
		put(&truth[i], sizeof(truth[i]));
	put((const void *)sp, head.stack_bytes);
	LEAVE();
}

NOINLINE int recurse(const char *name, int n)
{
	ENTER();
	int result = n ? recurse(name, n - 1) + n : (take(name), 0);
	LEAVE();
	return result;
}

/* Needs every register a callee must keep. */
NOINLINE long busy(const char *name, long a, long b, long c)
{
	ENTER();
	long d = a * b, e = b * c, f = a + c, g = d ^ e, h = e - f, i = g | 1;
	recurse(name, 2);
	LEAVE();
	return a + b * c + d + e * f - g * h / i;
}

NOINLINE void variable(const char *name, unsigned n)
{
	ENTER();
	volatile char *bytes = __builtin_alloca(n);
	bytes[0] = 1;
	recurse(name, 1);
	bytes[n - 1] = 2;
	LEAVE();
}

NOINLINE void aligned(const char *name, unsigned n, int a, int b, int c, int d, int e, int f, int g)
{
	volatile char block[128] __attribute__((aligned(64)));
	volatile char *bytes = __builtin_alloca(n);

	ENTER();
	block[0] = (char)(a + g);
	bytes[0] = block[0];
	busy(name, 1, 2, 3);
	block[127] = bytes[n - 1];
	LEAVE();
}

NOINLINE void large(const char *name)
{
	volatile char block[9000];

	ENTER();
	block[0] = 1;
	variable(name, 40);
	block[8999] = block[0];
	LEAVE();
}

static void (*volatile through)(const char *) = large;

void run(uint64_t top)
{
	stack_top = top;
	ENTER();
	take("leaf");
	recurse("recursion", 20);
	busy("registers", 3, 4, 5);
	variable("alloca", 333);
	aligned("realigned", 50, 1, 2, 3, 4, 5, 6, 7);
	through("large");
	recurse("cut", 500);
	leave();
}

#ifdef __x86_64__
__asm__(".globl _start; .type _start,@function; _start: .cfi_startproc; .cfi_undefined rip; xor %ebp,%ebp;"
        "lea 64(%rsp),%rdi; call run; hlt; .cfi_endproc; .size _start,.-_start");
#else
__asm__(
    ".globl _start; .type _start,%function; _start: .cfi_startproc; .cfi_undefined x30; mov x29,0; mov x30,0;"
    "add x0,sp,64; bl run; brk 0; .cfi_endproc; .size _start,.-_start");
#endif
