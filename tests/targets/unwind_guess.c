/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Allocates below assembly that has no unwind rows.
 *
 *   unwind_guess chain      which keeps a chain of frame pointers
 *   unwind_guess register   which uses the frame pointer for a list of code addresses on the stack
 *   unwind_guess both       one with a frame pointer below one without
 *   unwind_guess zero       which keeps a zero in it
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#define NAMED __attribute__((noinline, noclone))

enum { TIMES = 50, INVENTED = 5 };

#if defined(__x86_64__)
#define TYPE                   "@function"
#define BY_FRAME_POINTER(call) "push %rbp; mov %rsp, %rbp; " call "; pop %rbp; "
#define BY_REGISTER(call)      "push %rbp; mov %rsi, %rbp; " call "; pop %rbp; "
#define CALL(function)         "call " function
#define CALL_ARGUMENT          "call *%rdi"
#else
#define TYPE                   "%function"
#define BY_FRAME_POINTER(call) "stp x29, x30, [sp, -16]!; mov x29, sp; " call "; ldp x29, x30, [sp], 16; "
#define BY_REGISTER(call)      "stp x29, x30, [sp, -16]!; mov x29, x1; " call "; ldp x29, x30, [sp], 16; "
#define CALL(function)         "bl " function
#define CALL_ARGUMENT          "blr x0"
#endif

#define FUNCTION(name, body)                                                                      \
	__asm__(".pushsection .text; .globl " name "; .type " name ", " TYPE "\n" name ":\n" body \
	        "ret; .size " name ", . - " name "; .popsection")

FUNCTION("chain_inner", BY_FRAME_POINTER(CALL_ARGUMENT));
FUNCTION("chain_outer", BY_FRAME_POINTER(CALL("chain_inner")));
FUNCTION("by_register", BY_REGISTER(CALL_ARGUMENT));
FUNCTION("register_outer", BY_REGISTER(CALL("chain_inner")));

void chain_outer(void (*function)(void));
void by_register(void (*function)(void), const void *frame_pointer);
void register_outer(void (*function)(void), const void *frame_pointer);

static void *volatile kept;
static volatile int after;

NAMED void leaf(void)
{
	kept = malloc(1000);
	if (!kept)
		abort();
}

NAMED void with_chain(void)
{
	chain_outer(leaf);
	after++;
}

/* Every one looks like a frame: the next one's address, and that of code. But no call is in front of it. */
struct link {
	struct link *next;
	uintptr_t code;
};

NAMED void with_list(void (*function)(void (*)(void), const void *))
{
	struct link list[INVENTED];

	for (int i = 0; i < INVENTED; i++)
		list[i] = (struct link){i + 1 < INVENTED ? &list[i + 1] : NULL, (uintptr_t)chain_outer + 4};
	function(leaf, list);
	kept = list;
	after++;
}

NAMED void with_zero(void)
{
	by_register(leaf, NULL);
	after++;
}

int main(int argc, char **argv)
{
	const char *mode = argc > 1 ? argv[1] : "";

	for (int i = 0; i < TIMES; i++)
		if (!strcmp(mode, "chain"))
			with_chain();
		else if (!strcmp(mode, "register"))
			with_list(by_register);
		else if (!strcmp(mode, "both"))
			with_list(register_outer);
		else if (!strcmp(mode, "zero"))
			with_zero();
	return 0;
}
