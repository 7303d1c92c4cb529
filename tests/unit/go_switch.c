/* SPDX-License-Identifier: Apache-2.0 */
/* The ends of runtime.asmcgocall, as versions of Go have them, and code that resembles them. */
#include "sampler/unwind/go_switch.h"

#include "sampler/unwind/module.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <unistd.h>

#include <cmocka.h>

#if defined(__x86_64__)

#define CODE(name)                \
	extern const char name[]; \
	__asm__(".pushsection .text\n" #name ":\n"
#define END "ret\n.skip 64, 0xcc\n.popsection\n");

CODE(go_1_26)
"mov 8(%rsp), %rdi\n mov 8(%rdi), %rsi\n sub (%rsp), %rsi\n mov %rdi, %fs:-8\n mov %rsi, %rsp\n"
    "mov %eax, 0x20(%rsp)\n pop %rbp\n" END CODE(
        go_1_19) "mov 0x30(%rsp), %rdi\n mov 8(%rdi), %rsi\n sub 0x28(%rsp), %rsi\n mov %rdi, %fs:-8\n mov "
                 "%rsi, %rsp\n"
                 "mov %eax, 0x18(%rsp)\n" END
    CODE(go_independent) "mov go_1_26(%rip), %rcx\n mov 8(%rsp), %rdi\n mov 8(%rdi), %rsi\n sub (%rsp), "
                         "%rsi\n mov %rdi, %fs:(%rcx)\n"
                         "mov %rsi, %rsp\n mov %eax, 0x20(%rsp)\n pop %rbp\n" END
    CODE(go_relaxed) "mov $-8, %rcx\n mov 8(%rsp), %rdi\n mov 8(%rdi), %rsi\n sub (%rsp), %rsi\n mov %rdi, "
                     "%fs:(%rcx)\n"
                     "mov %rsi, %rsp\n mov %eax, 0x20(%rsp)\n pop %rbp\n" END
    CODE(go_realigned) "mov (%rsp), %rsi\n mov %rsi, %rsp\n mov %eax, 0x20(%rsp)\n pop %rbp\n" END
    CODE(go_realigned_1_19) "mov 0x28(%rsp), %rsi\n mov %rsi, %rsp\n mov %eax, 0x18(%rsp)\n" END
    CODE(other_words) "mov 0x18(%rsp), %rdi\n mov 8(%rdi), %rsi\n sub (%rsp), %rsi\n mov %eax, 0x20(%rsp)\n "
                      "pop %rbp\n" END
    CODE(other_object) "mov 8(%rsp), %rdi\n mov 16(%rdi), %rsi\n sub (%rsp), %rsi\n mov %eax, 0x20(%rsp)\n "
                       "pop %rbp\n" END CODE(other_end) "mov 8(%rsp), %rdi\n mov 8(%rdi), %rsi\n sub (%rsp), "
                                                        "%rsi\n mov %eax, 0x20(%rsp)\n nop\n" END

    static struct modules *store;
static struct maps *maps;

static int open_maps(void **unused)
{
	store = modules_new(16);
	maps = maps_new(store, getpid(), true);
	assert_non_null(maps);
	assert_int_equal(maps_read_proc(maps), 0);
	return 0;
}

static int close_maps(void **unused)
{
	maps_free(maps);
	modules_free(store);
	return 0;
}

static void versions_are_known(void **unused)
{
	const struct {
		const char *code;
		uint32_t depth_word;
		bool has_record;
	} known[] = {
	    {go_1_26, 0, true}, {go_1_19, 5, false}, {go_independent, 0, true}, {go_relaxed, 0, true}};

	for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++) {
		struct go_switch found;

		assert_true(go_switch_at(maps, (uintptr_t)known[i].code, &found));
		assert_int_equal(found.depth_word, known[i].depth_word);
		assert_int_equal(found.has_record, known[i].has_record);
		assert_false(go_realigned_at(maps, (uintptr_t)known[i].code));
	}
	assert_true(go_realigned_at(maps, (uintptr_t)go_realigned));
	assert_true(go_realigned_at(maps, (uintptr_t)go_realigned_1_19));
}

static void other_code_is_not(void **unused)
{
	const uintptr_t others[] = {(uintptr_t)other_words, (uintptr_t)other_object, (uintptr_t)other_end,
	    (uintptr_t)go_1_26 + 1, (uintptr_t)go_realigned, (uintptr_t)open_maps, (uintptr_t)qsort,
	    (uintptr_t)&store, 0, UINTPTR_MAX};

	for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++) {
		struct go_switch found;

		assert_false(go_switch_at(maps, others[i], &found));
		assert_true(others[i] == (uintptr_t)go_realigned || !go_realigned_at(maps, others[i]));
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(versions_are_known),
	    cmocka_unit_test(other_code_is_not),
	};

	return cmocka_run_group_tests(tests, open_maps, close_maps);
}

#else

int main(void)
{
	return 0;
}

#endif
