/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The hook's walk from Go's call of C on to the goroutine that has called: what is found, and that nothing
 * is read but what is known to be readable.
 */
#include "preload/goroutine.h"
#include "tests/unit/walk_scene.h"

enum { SWITCH = 0x404000, CGOCALL = 0x405000, OUTER = 0x406000, GOEXIT = 0x407000 };
enum { PAGE_BYTES = 4096, MEMORY_WORDS = 4 * PAGE_BYTES / WORD_BYTES };
/* in the goroutine's memory, by words: its description, and the frame records on its stack */
enum { DESCRIPTION = 4, CALLED_AT = 100, CGOCALL_AT = 110, OUTER_AT = 120, STACK_END = 130 };
enum { SWITCH_AT = 30 }; /* on the thread's stack: asmcgocall's frame */

static uintptr_t *memory; /* between two pages that cannot be read */

static int open_memory(void **state)
{
	const size_t bytes = MEMORY_WORDS * WORD_BYTES;
	unsigned char *mapped =
	    mmap(NULL, bytes + 2 * PAGE_BYTES, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	memory = (uintptr_t *)(void *)(mapped + PAGE_BYTES);
	assert_int_equal(0, mprotect(memory, bytes, PROT_READ | PROT_WRITE));
	goroutine_mapped(memory, bytes);
	assert_int_equal(goroutine_memory_end((uintptr_t)memory), 0); /* a process that was attached to */
	goroutine_open();
	return open_region(state);
}

static int begin_known(void **state)
{
	goroutine_mapped(memory, MEMORY_WORDS * WORD_BYTES);
	memset(memory, 0, MEMORY_WORDS * WORD_BYTES);
	return begin(state);
}

static uintptr_t of(size_t word)
{
	return (uintptr_t)(memory + word);
}

static void record(size_t at, uintptr_t caller_fp, uintptr_t return_address)
{
	memory[at] = caller_fp;
	memory[at + 1] = return_address;
}

/* OUTER calls C, and LEAF is there. */
static struct walk_start call_c(void)
{
	publish(false, LEAF, (struct walk_rule){.cfa_words = SWITCH_AT - 10, .ra_words = -1});
	publish(false, SWITCH, walk_go_rule(0, WALK_GO_RECORD));
	stack[SWITCH_AT - 1] = SWITCH;
	stack[SWITCH_AT] = (STACK_END - CALLED_AT) * WORD_BYTES;
	stack[SWITCH_AT + 1] = of(DESCRIPTION);
	memory[DESCRIPTION + 1] = of(STACK_END);
	record(CALLED_AT, of(CGOCALL_AT), CGOCALL);
	record(CGOCALL_AT, of(OUTER_AT), OUTER);
	record(OUTER_AT, 0, GOEXIT);
	return at_word(LEAF, 10);
}

static void the_goroutine_is_walked(void **unused)
{
	const uint64_t pcs[] = {LEAF, SWITCH, CGOCALL, OUTER, GOEXIT};
	uint64_t noted[8];
	const struct walk_start start = call_c();
	const uint32_t number = number_of(pcs, 5, 0);
	const struct walk_found found = walk_stack(start);

	assert_int_equal(found.number, number);
	assert_true(found.switched);
	assert_false(found.asked);
	assert_int_equal(walk_frames(start, noted, 8), 6);
	assert_memory_equal(noted + 1, pcs, sizeof(pcs));
	assert_int_equal(walk_frames(start, noted, 5), 0); /* no room */
}

/* Of a version of Go that has no frame record at the stack pointer, and more in asmcgocall's frame. */
static void the_goroutine_of_an_old_version_is_walked(void **unused)
{
	const uint64_t pcs[] = {LEAF, SWITCH, CGOCALL, OUTER, GOEXIT};
	struct walk_start start = call_c();

	begin(NULL);
	publish(false, LEAF, (struct walk_rule){.cfa_words = SWITCH_AT - 10, .ra_words = -1});
	publish(false, SWITCH, walk_go_rule(5, WALK_GO_RETURN_ADDRESS));
	stack[SWITCH_AT - 1] = SWITCH;
	stack[SWITCH_AT + 5] = (STACK_END - CALLED_AT) * WORD_BYTES;
	stack[SWITCH_AT + 6] = of(DESCRIPTION);
	memory[CALLED_AT] = CGOCALL;
	start.fp = of(CGOCALL_AT);
	const uint32_t number = number_of(pcs, 5, 0);
	assert_int_equal(walk(start), number);
	start.fp = of(CALLED_AT); /* another frame's: of before the stack was moved, say */
	assert_int_equal(walk(start), 0);
}

/* Whatever stands in the frame, in the description and in the records. */
static void nothing_else_is_read(void **unused)
{
	static const size_t of_memory[] = {DESCRIPTION + 1, CALLED_AT, CALLED_AT + 1, CGOCALL_AT, OUTER_AT};
	const uintptr_t end = of(MEMORY_WORDS);
	const uintptr_t odd[] = {0, 1, 8, (uintptr_t)-1, (uintptr_t)-8, of(0), of(0) - 8, of(CALLED_AT) + 4,
	    end, end - 8, end - 16, end + 8, (uintptr_t)stack, (uintptr_t)(stack + WORDS) - 8, of(OUTER_AT)};
	const uint64_t whole[] = {LEAF, SWITCH, CGOCALL, OUTER, GOEXIT};
	const uint32_t number = number_of(whole, 5, 0);

	for (size_t i = 0; i < sizeof(odd) / sizeof(odd[0]); i++) {
		for (size_t word = 0; word < 2; word++) {
			const struct walk_start start = call_c();

			stack[SWITCH_AT + word] = odd[i];
			assert_int_not_equal(walk(start), number);
		}
		for (size_t word = 0; word < sizeof(of_memory) / sizeof(of_memory[0]); word++) {
			const struct walk_start start = call_c();

			memory[of_memory[word]] = odd[i];
			(void)walk(start);
		}
	}
}

static void a_frame_at_the_end_of_the_own_stack_is_not_left(void **unused)
{
	const struct walk_start start = call_c();

	/* the stack pointer is above the stack, if the row is to be believed */
	publish(false, MAIN, (struct walk_rule){.cfa_words = WORDS, .ra_words = 20 - WORDS});
	stack[10 + 20] = SWITCH;
	assert_int_equal(walk((struct walk_start){.pc = MAIN, .sp = start.sp}), 0);
	stack[WORDS - 1] = of(DESCRIPTION);
	assert_int_equal(walk((struct walk_start){.pc = SWITCH, .sp = (uintptr_t)(stack + WORDS - 1)}), 0);
}

static void a_chain_that_leads_back_ends(void **unused)
{
	const struct walk_start start = call_c();

	record(OUTER_AT, of(CGOCALL_AT), GOEXIT);
	assert_int_equal(walk(start), 0);
}

/* What is gone, and what nobody has told of. */
static void unknown_memory_is_not_read(void **unused)
{
	const struct walk_start start = call_c();

	assert_int_not_equal(walk(start), 0);
	goroutine_unmapped(memory, PAGE_BYTES);
	assert_int_equal(0, mprotect(memory, PAGE_BYTES, PROT_NONE));
	assert_int_equal(walk(start), 0);
	assert_int_equal(0, mprotect(memory, PAGE_BYTES, PROT_READ | PROT_WRITE));
}

static void known_memory_grows_and_is_cut(void **unused)
{
	unsigned char *const base = (unsigned char *)0x123400000000;
	const uintptr_t start = (uintptr_t)base;

	assert_int_equal(goroutine_memory_end(start), 0);
	goroutine_mapped(base, 0x1000);
	assert_int_equal(goroutine_memory_end(start), start + 0x1000);
	assert_int_equal(goroutine_memory_end(start + 0x1000), 0);
	goroutine_mapped(base + 0x1000, 0x2000);
	assert_int_equal(goroutine_memory_end(start + 8), start + 0x3000);
	goroutine_mapped(base + 0x1000, 0x1000); /* once more */
	assert_int_equal(goroutine_memory_end(start + 8), start + 0x3000);
	goroutine_unmapped(base + 0x3000, 0x1000);
	goroutine_unmapped(base - 0x1000, 0x1000);
	assert_int_equal(goroutine_memory_end(start + 8), start + 0x3000);
	goroutine_unmapped(base + 0x1800, 8); /* what is behind a gap is not known any more */
	assert_int_equal(goroutine_memory_end(start + 8), start + 0x1800);
	assert_int_equal(goroutine_memory_end(start + 0x2000), 0);
	goroutine_unmapped(base - 0x1000, 0x10000);
	assert_int_equal(goroutine_memory_end(start), 0);
	goroutine_mapped((void *)(UINTPTR_MAX - 0xfff), 0x2000); /* no such address */
	assert_int_equal(goroutine_memory_end(UINTPTR_MAX - 0xff), 0);
	for (uintptr_t i = 1; i < 100; i++)
		goroutine_mapped(base + i * 0x10000, 0x1000);
	assert_int_equal(goroutine_memory_end(start + 99 * 0x10000), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test_setup(the_goroutine_is_walked, begin_known),
	    cmocka_unit_test_setup(the_goroutine_of_an_old_version_is_walked, begin_known),
	    cmocka_unit_test_setup(nothing_else_is_read, begin_known),
	    cmocka_unit_test_setup(a_frame_at_the_end_of_the_own_stack_is_not_left, begin_known),
	    cmocka_unit_test_setup(a_chain_that_leads_back_ends, begin_known),
	    cmocka_unit_test_setup(unknown_memory_is_not_read, begin_known),
	    cmocka_unit_test_setup(known_memory_grows_and_is_cut, begin_known),
	};

	return cmocka_run_group_tests(tests, open_memory, NULL);
}
