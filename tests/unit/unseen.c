/* SPDX-License-Identifier: Apache-2.0 */
/* The words for what is not seen, and their order. */
#include "sampler/books/unseen.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#define MIB (1024.0 * 1024)

static const char *described(const struct unseen_facts *facts)
{
	static char text[UNSEEN_MAX * UNSEEN_LINE_BYTES];
	char line[UNSEEN_LINE_BYTES];
	struct unseen unseen;

	text[0] = '\0';
	unseen_describe(&unseen, facts);
	for (size_t i = 0; i < unseen.count; i++) {
		strcat(text, unseen_line(&unseen.texts[i], line));
		strcat(text, "\n");
	}
	return text;
}

static struct unseen_facts measured(double resident, double others, double heap)
{
	return (struct unseen_facts){.program = "app",
	    .measured = true,
	    .resident = resident * MIB,
	    .others = others * MIB,
	    .heap = heap * MIB};
}

static void nothing_is_said_of_a_plain_program(void **unused)
{
	struct unseen_facts facts = measured(100, 3, 80);

	assert_string_equal(described(&facts), "");
	assert_false(unseen_may_hide(&facts, MIB));
	facts = measured(100, 30, 60); /* most is the heap */
	assert_string_equal(described(&facts), "");
}

static void plug_ins_with_a_libc_of_their_own(void **unused)
{
	struct unseen_facts facts = measured(100, 3, 0);

	facts.second_libc = true;
	assert_true(unseen_may_hide(&facts, 100 * MIB));
	assert_string_equal(described(&facts),
	    "not seen: what is allocated by plug-ins with a libc of their own, which dlmopen gives them; "
	    "dlopen in place of dlmopen shows it\n");
}

static void an_allocator_inside(void **unused)
{
	struct unseen_facts facts = measured(50, 26.7, 0);

	strcpy(facts.allocator, "_rjem_malloc");
	strcpy(facts.allocator_file, "ingest");
	assert_true(unseen_may_hide(&facts, 100 * MIB));
	assert_string_equal(described(&facts),
	    "not seen: 26.7 MiB are of the allocator inside ingest (_rjem_malloc), or other mmap; --mmap "
	    "shows "
	    "who makes it grow, linking it as a shared library shows each block\n");
	facts.measured = false;
	assert_string_equal(described(&facts),
	    "not seen: what is allocated by the allocator inside ingest (_rjem_malloc); --mmap shows who "
	    "makes "
	    "it grow, linking it as a shared library shows each block\n");
	facts.with_mmap = true;
	assert_null(strstr(described(&facts), "--mmap"));
}

/* It may be hidden where nothing is known of functions; what it could hide is what is not the heap's. */
static void a_stripped_program(void **unused)
{
	struct unseen_facts facts = measured(50, 1, 40);

	facts.stripped = true;
	assert_false(unseen_may_hide(&facts, 1.5 * MIB));
	assert_true(unseen_may_hide(&facts, 0.5 * MIB));
	facts.measured = false;
	assert_true(unseen_may_hide(&facts, 1e15));
	facts = measured(50, 30, 10);
	facts.stripped = true;
	assert_string_equal(described(&facts),
	    "not seen: 30.0 MiB are memory in which no sampled block lies: pools, mmap, or an allocator "
	    "inside, which may be hidden: the program is stripped; --mmap shows who makes it grow\n");
}

static void interpreters(void **unused)
{
	struct unseen_facts facts = measured(110, 92.3, 11.8);

	facts.runtime = (struct runtime){.kind = RUNTIME_PYTHON, .python_names = true};
	facts.named = 100 * MIB;
	assert_string_equal(described(&facts),
	    "not seen: 92.3 MiB are python's own pool or other mmap; --mmap shows who makes it grow, "
	    "PYTHONMALLOC=malloc is exact\n");
	facts.nameless = 68 * MIB;
	facts.with_mmap = true;
	assert_string_equal(described(&facts),
	    "not seen: the Python functions that allocated 68 % of the bytes; start it with "
	    "PYTHONPERFSUPPORT=1 "
	    "in its environment\n");
	facts.nameless = 9 * MIB;
	assert_string_equal(described(&facts), "");
	facts.runtime = (struct runtime){.kind = RUNTIME_JVM};
	facts.nameless = 68 * MIB;
	assert_non_null(strstr(described(&facts), "jcmd PID GC.heap_dump FILE (not where -Xrs is set)\n"));
	assert_null(strstr(described(&facts), "perfmap"));
	facts.asks = true;
	assert_non_null(strstr(described(&facts), "jcmd PID GC.heap_dump FILE\n"));
	assert_non_null(strstr(described(&facts), "jcmd PID Compiler.perfmap"));
	facts.runtime = (struct runtime){.kind = RUNTIME_NODE};
	assert_non_null(strstr(
	    described(&facts), "node --perf-basic-prof-only-functions --interpreted-frames-native-stack"));
}

/* Nothing of what they hand out is malloc's: that nothing was sampled is no bound. */
static void runtimes_that_avoid_malloc(void **unused)
{
	struct unseen_facts facts = measured(110, 92.3, 0);

	facts.stripped = true;
	facts.runtime = (struct runtime){.kind = RUNTIME_GO};
	facts.nameless = facts.named = MIB; /* Go's functions have names */
	assert_true(unseen_may_hide(&facts, 1.5 * MIB));
	assert_string_equal(described(&facts),
	    "not seen: 92.3 MiB are Go's own heap or other mmap; --mmap shows that it grows, Go's own heap "
	    "profile (net/http/pprof) which code\n");
	facts.with_mmap = true;
	assert_string_equal(described(&facts),
	    "not seen: 92.3 MiB are Go's own heap or other mmap; Go's own heap profile (net/http/pprof) "
	    "shows which code\n");
	facts = measured(110, 92.3, 0);
	facts.runtime = (struct runtime){.kind = RUNTIME_ERLANG};
	assert_string_equal(described(&facts),
	    "not seen: 92.3 MiB are Erlang's own allocators or other mmap; --mmap shows who makes it grow, "
	    "erl +Mea "
	    "min is exact\n");
	facts.runtime.kind = RUNTIME_PHP;
	assert_non_null(strstr(described(&facts),
	    "PHP's own pool or other mmap; --mmap shows who makes it grow, "
	    "USE_ZEND_ALLOC=0 is exact\n"));
	facts.runtime_by_malloc = true;
	assert_false(unseen_may_hide(&facts, 1.5 * MIB));
	assert_null(strstr(described(&facts), "USE_ZEND_ALLOC"));
	assert_null(strstr(described(&facts), "pool or other"));
	facts.runtime.kind = RUNTIME_PYTHON;
	facts.measured = false;
	assert_string_equal(described(&facts), "");
}

static void names_of_scripts_functions(void **unused)
{
	struct unseen_facts facts = measured(100, 1, 90);

	facts.named = 100 * MIB;
	facts.nameless = 68 * MIB;
	facts.runtime = (struct runtime){.kind = RUNTIME_PERL};
	assert_string_equal(
	    described(&facts), "not seen: the Perl functions that allocated 68 % of the bytes\n");
	facts.runtime.kind = RUNTIME_PYTHON;
	assert_string_equal(described(&facts),
	    "not seen: the Python functions that allocated 68 % of the bytes; memray shows their lines; "
	    "heaptap names those of Python 3.12 and later\n");
	facts = (struct unseen_facts){.names_unknown = true, .runtime = {.kind = RUNTIME_RUBY}};
	assert_string_equal(described(&facts),
	    "not seen: the names of Ruby functions; Ruby's own ObjectSpace.trace_object_allocations shows "
	    "their lines\n");
	assert_false(unseen_may_hide(&facts, MIB));
}

static void what_an_environment_turns_off(void **unused)
{
	static const char on[] = "A=1\0PYTHONMALLOC=pymalloc\0XPYTHONMALLOC=malloc\0PYTHONMALLOC=mal",
	                  off[] = "A=1\0\0PYTHONMALLOC=malloc_debug";

	assert_false(runtime_memory_is_off(RUNTIME_PYTHON, on, sizeof(on)));
	assert_true(runtime_memory_is_off(RUNTIME_PYTHON, off, sizeof(off)));
	assert_true(runtime_memory_is_off(RUNTIME_PYTHON, off, sizeof(off) - sizeof("_debug")));
	assert_false(
	    runtime_memory_is_off(RUNTIME_PYTHON, off, sizeof(off) - sizeof("_debug") - 1)); /* cut */
	assert_false(runtime_memory_is_off(RUNTIME_PYTHON, "", 0));
	assert_false(runtime_memory_is_off(RUNTIME_PHP, off, sizeof(off)));
	assert_false(runtime_memory_is_off(RUNTIME_GO, off, sizeof(off)));
}

static void the_most_bytes_come_first(void **unused)
{
	struct unseen unseen = {.count = 0};

	unseen_add(&unseen, UNSEEN_OTHERS, 2, "two", "");
	unseen_add(&unseen, UNSEEN_OTHERS, 0, "unknown", "");
	unseen_add(&unseen, UNSEEN_OTHERS, 3, "three\n", "");
	assert_string_equal(unseen.texts[0].what, "three?");
	assert_string_equal(unseen.texts[1].what, "two");
	assert_string_equal(unseen.texts[2].what, "unknown");
	for (int i = 0; i < 2 * UNSEEN_MAX; i++)
		unseen_add(&unseen, UNSEEN_OTHERS, 1, "more", "");
	assert_int_equal(unseen.count, UNSEEN_MAX);
}

static void a_missing_debug_file(void **unused)
{
	struct unseen_facts facts = {.program = "gateway", .debug_link = "gateway.debug", .build_id = "12ab"};
	struct unseen unseen = {.count = 0};
	char line[UNSEEN_LINE_BYTES];

	unseen_add_stripped(&unseen, &facts, 5, 100);
	assert_int_equal(unseen.count, 0);
	unseen_add_stripped(&unseen, &facts, 77, 100);
	assert_string_equal(unseen_line(&unseen.texts[0], line),
	    "not seen: the functions of 77 % of the bytes, in gateway, which is stripped; its debug file is "
	    "not "
	    "there: looked for gateway.debug, /usr/lib/debug/.build-id/12/ab.debug");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(nothing_is_said_of_a_plain_program),
	    cmocka_unit_test(plug_ins_with_a_libc_of_their_own),
	    cmocka_unit_test(an_allocator_inside),
	    cmocka_unit_test(a_stripped_program),
	    cmocka_unit_test(interpreters),
	    cmocka_unit_test(runtimes_that_avoid_malloc),
	    cmocka_unit_test(names_of_scripts_functions),
	    cmocka_unit_test(what_an_environment_turns_off),
	    cmocka_unit_test(the_most_bytes_come_first),
	    cmocka_unit_test(a_missing_debug_file),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
