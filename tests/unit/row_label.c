/* SPDX-License-Identifier: Apache-2.0 */
/* Which part of a program a frame is from, and which frame of a stack names its row. */
#include "pprof/analysis/row_label.h"
#include "pprof/analysis/filter.h"
#include "pprof/analysis/totals.h"
#include "pprof/model/profile.h"
#include "pprof/text/pattern.h"
#include "pprof/text/short_name.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static const struct {
	const char *name, *module;
	enum frame_role role;
} frames[] = {
    {"main", "/srv/app", FRAME_OWN},
    {"app::load_users", "/srv/app", FRAME_OWN},
    {"<app::Row as core::clone::Clone>::clone", "/srv/app", FRAME_OWN},
    {"<u8 as app::Encode>::encode", "/srv/app", FRAME_OWN},
    {"<alloc::vec::Vec<u8> as app::Encode>::encode", "/srv/app", FRAME_OWN},
    {"core::Engine::load", "/srv/app", FRAME_OWN}, /* C++, not Rust */
    {"alloc::Arena::take", "/srv/app", FRAME_OWN},
    {"standard::load", "/srv/app", FRAME_OWN},
    {"getline_of_ours", "/srv/app", FRAME_OWN},
    {"sqlite3_exec", "/usr/lib/libsqlite3.so.0", FRAME_OWN},
    {"v8::internal::Factory::NewCode", "/usr/bin/node", FRAME_OWN},
    /* libraries */
    {"std::vector<app::Row, std::allocator<app::Row> >::resize", "/srv/app", FRAME_LIBRARY},
    {"void std::vector<int>::emplace_back<int>(int&&)", "/srv/app", FRAME_LIBRARY},
    {"__gnu_cxx::new_allocator<int>::allocate", "/srv/app", FRAME_LIBRARY},
    {"alloc::vec::from_elem", "/srv/app", FRAME_LIBRARY},
    {"core::iter::traits::iterator::Iterator::collect", "/srv/app", FRAME_LIBRARY},
    {"hashbrown::raw::RawTableInner::new_uninitialized", "/srv/app", FRAME_LIBRARY},
    {"<alloc::vec::Vec<T,A> as core::clone::Clone>::clone", "/srv/app", FRAME_LIBRARY},
    {"<alloc::raw_vec::RawVecInner>::grow_amortized", "/srv/app", FRAME_LIBRARY},
    {"<&mut F as core::ops::function::FnOnce<A>>::call_once", "/srv/app", FRAME_LIBRARY},
    {"<[T] as alloc::borrow::ToOwned>::to_owned", "/srv/app", FRAME_LIBRARY},
    {"getdelim", "/lib/x86_64-linux-gnu/libc.so.6", FRAME_LIBRARY},
    {"_dl_map_object", "/lib64/ld-linux-x86-64.so.2", FRAME_LIBRARY},
    {"_start", "/srv/app", FRAME_LIBRARY},
    /* allocators */
    {"malloc", "/lib/x86_64-linux-gnu/libc.so.6", FRAME_ALLOCATOR},
    {"operator new[](unsigned long)", "/usr/lib/libstdc++.so.6", FRAME_ALLOCATOR},
    {"__rust_alloc_zeroed", "/srv/app", FRAME_ALLOCATOR},
    {"xmalloc", "/srv/app", FRAME_ALLOCATOR},
    {"g_malloc0", "/usr/lib/libglib-2.0.so.0", FRAME_ALLOCATOR},
    {"zmalloc_usable", "/usr/bin/redis-server", FRAME_ALLOCATOR},
    {"ztrymalloc_usable_internal", "/usr/bin/redis-server", FRAME_ALLOCATOR},
    {"sqlite3DbMallocRawNN", "/usr/lib/libsqlite3.so.0", FRAME_ALLOCATOR},
    {"_PyObject_Calloc", "/usr/bin/python3.11", FRAME_ALLOCATOR},
    {"PyMem_RawMalloc", "/usr/bin/python3.11", FRAME_ALLOCATOR},
    {"xstrdup", "/srv/app", FRAME_ALLOCATOR},
    {"[mmap]", "[heaptap]", FRAME_ALLOCATOR},
    {"pool_alloc", "/srv/app", FRAME_ALLOCATES},
    {"AllocSetAlloc", "/usr/lib/postgresql/15/bin/postgres", FRAME_ALLOCATES},
    {"Pool<int>::allocate", "/srv/app", FRAME_ALLOCATES},
    {"test_malloc_of_ours", "/srv/app", FRAME_ALLOCATES},
    /* scripts */
    {"py::load_users:/srv/load.py", "[anon:jit]", FRAME_SCRIPT},
    {"py::load:/usr/lib/python3.12/site-packages/x.py", "[anon:jit]", FRAME_SCRIPT_LIBRARY},
    {"py::load:/srv/site-packages/x.py", "[anon:jit]", FRAME_SCRIPT_LIBRARY},
    {"py::load:/usr/lib/python3/dist-packages/x.py", "[anon:jit]", FRAME_SCRIPT_LIBRARY},
    {"py::take:/srv/venv/lib64/python3.13/site-packages/pandas/core/take.py", "[anon:jit]",
        FRAME_SCRIPT_LIBRARY},
    {"py::<module>:/srv/venv/bin/gunicorn", "[anon:jit]", FRAME_SCRIPT_LIBRARY},
    {"py::<module>:/srv/bin/app.py", "[anon:jit]", FRAME_SCRIPT},
    {"py::main:/srv/bin/app", "[anon:jit]", FRAME_SCRIPT},
    {"py::loads:/usr/lib/python3.12/json/__init__.py", "[anon:jit]", FRAME_SCRIPT_LIBRARY},
    {"py::_find_and_load:<frozen importlib._bootstrap>", "[anon:jit]", FRAME_SCRIPT_LIBRARY},
    {"JS:*loadUsers /srv/load.js:3:1", "[anon:jit]", FRAME_SCRIPT},
    {"JS:*parse /srv/node_modules/body/index.js:3:1", "[anon:jit]", FRAME_SCRIPT_LIBRARY},
    {"void Svc.unzip()", "[anon:jit]", FRAME_SCRIPT},
    {"void Svc$$Lambda$1/0x00007fc758000a08.run()", "[anon:jit]", FRAME_SCRIPT},
    {"void java.util.zip.Inflater.<init>(boolean)", "[anon:jit]", FRAME_SCRIPT_LIBRARY},
    {"byte[] java.util.Arrays.copyOf(byte[], int)", "[anon:jit]", FRAME_SCRIPT_LIBRARY},
    {"javax.net.ssl.SSLEngine javax.net.ssl.SSLContext.createSSLEngine()", "[anon:jit]",
        FRAME_SCRIPT_LIBRARY},
    {"void javacard.Svc.unzip()", "[anon:jit]", FRAME_SCRIPT},
    {"JS:~wrapSafe node:internal/modules/cjs/loader:1150:18", "[anon:jit]", FRAME_SCRIPT_LIBRARY},
    {"void app.Main.load(int)", "[anon:jit]", FRAME_SCRIPT},
    {"void java.util.HashMap.put(java.lang.Object)", "[anon:jit]", FRAME_SCRIPT_LIBRARY},
    {"Interpreter", "[anon:jit]", FRAME_LIBRARY},
    {"BytecodeHandler:LdaSmi", "[anon:jit]", FRAME_LIBRARY},
    /* no function */
    {"", "/srv/app", FRAME_UNNAMED},
    {"", "[anon:jit]", FRAME_UNNAMED},
    {"[jit]", "[anon:jit]", FRAME_UNNAMED},
    {"[guessed]", "[heaptap]", FRAME_UNNAMED},
    {"libsqlite3.so.0.8.6+0xa7503", "/usr/lib/libsqlite3.so.0", FRAME_UNNAMED},
    {"app+0x3a10", "/srv/app", FRAME_UNNAMED_OWN},
};

static void roles_of_frames(void **unused)
{
	for (size_t i = 0; i < sizeof(frames) / sizeof(*frames); i++) {
		char brief[256];

		short_name(frames[i].name, strlen(frames[i].name), brief);
		if (frames_role(frames[i].name, brief, frames[i].module) != frames[i].role)
			fail_msg("'%s': role %d", frames[i].name,
			    (int)frames_role(frames[i].name, brief, frames[i].module));
	}
}

/* ---- stacks */

enum { DEPTH_MOST = 12 };

/* Names of functions, innermost first, up to NULL. Where "|" stands before a name, it is in [anon:jit]. */
static void stack_put(struct profile *p, const char *const *names, int64_t bytes)
{
	const struct profile_mapping mappings[] = {
	    {0x1000, 0x100000, 0, "/srv/app", "", 0}, {0x200000, 0x300000, 0, "[anon:jit]", "", 0}};
	const int64_t values[2] = {1, bytes};
	uint32_t locations[DEPTH_MOST], ids[2];
	size_t depth = 0;

	for (size_t i = 0; i < 2; i++)
		ids[i] = profile_add_mapping(p, &mappings[i]);
	for (; names[depth]; depth++) {
		bool made = *names[depth] == '|';
		const char *name = names[depth] + made;
		const struct profile_function function = {.name = name, .system_name = name};
		const struct profile_line line = {.function = profile_add_function(p, &function)};
		const struct profile_location location = {.mapping = ids[made],
		    .address = (made ? 0x200000 : 0x1000) + 1 + line.function,
		    .lines = &line,
		    .line_count = 1};

		locations[depth] = profile_add_location(p, &location);
	}
	assert_int_equal(profile_add_sample(p, locations, depth, values, NULL, 0), 0);
}

struct stack {
	const char *names[DEPTH_MOST];
	const char *head, *through; /* through: NULL for none */
};

static const struct stack stacks[] = {
    {{"load_users", "main"}, "load_users", NULL},
    {{"malloc", "main"}, "main", "malloc"},
    {{"std::vector<int>::_M_grow", "std::vector<int>::resize", "load_users", "main", "_start"}, "load_users",
        "std::vector::resize"},
    {{"xmalloc", "copy_rows", "main"}, "copy_rows", "xmalloc"},
    /* called by one function: the user's own; by several: a wrapper */
    {{"xmalloc", "make_buffer_alloc", "main"}, "make_buffer_alloc", "xmalloc"},
    {{"pool_alloc", "read_a", "main"}, "read_a", "pool_alloc"},
    {{"pool_alloc", "read_b", "main"}, "read_b", "pool_alloc"},
    {{"libfoo.so+0x12", "std::string::append", "[guessed]", "read_c", "main"}, "read_c",
        "std::string::append"},
    /* an interpreter and what it runs */
    {{"_PyObject_Malloc", "PyUnicode_New", "_PyEval_EvalFrameDefault", "|py::load:/srv/load.py",
         "_PyEval_EvalFrameDefault", "Py_RunMain"},
        "py::load:/srv/load.py", "PyUnicode_New"},
    {{"node::New", "|JS:*node:buffer node:buffer:1:1", "|JS:^load /srv/load.js:1:1", "node::Start"},
        "load /srv/load.js:1:1", "node::New"},
    {{"inflateInit2_", "Java_java_util_zip_Inflater_init", "|java.util.zip.Inflater.init",
         "|void java.util.zip.Inflater.<init>(boolean)", "|void Svc.unzip()", "|Interpreter", "JavaMain"},
        "Svc.unzip", "inflateInit2_"},
    {{"PyArray_New", "|py::take:/usr/lib/python3/dist-packages/pandas/take.py", "_PyEval_EvalFrameDefault",
         "|py::build_report:/srv/app.py", "_PyEval_EvalFrameDefault", "|py::<module>:/srv/app.py"},
        "py::build_report:/srv/app.py", "PyArray_New"},
    {{"Zone", "|JS:~wrapSafe node:internal/x:1:1", "node::Start"}, "wrapSafe node:internal/x:1:1", "Zone"},
    /* no own code */
    {{"operator new", "std::locale::locale", "_start"}, "std::locale::locale", "operator new"},
    {{"[lost stack]"}, "[lost stack]", NULL},
    {{"malloc", "[guessed]"}, "malloc", NULL},
    /* a stripped program */
    {{"operator new", "std::string::append", "app+0x3a10", "app+0x2000", "start_thread"}, "app+0x3a10",
        "std::string::append"},
    {{"app+0x3a10", "handle", "start_thread"}, "handle", "app+0x3a10"},
    /* recursion */
    {{"walk", "walk", "walk", "main"}, "walk", NULL},
};

enum { STACK_COUNT = sizeof(stacks) / sizeof(*stacks) };

static struct profile *profile_make(void)
{
	struct profile *p = profile_new();

	profile_add_sample_type(p, "inuse_objects", "count");
	profile_add_sample_type(p, "inuse_space", "bytes");
	profile_set_period(p, "space", "bytes", 4096);
	for (size_t i = 0; i < STACK_COUNT; i++)
		stack_put(p, stacks[i].names, 1 << i);
	return p;
}

static const char *name_at(const struct traces *t, size_t row, uint32_t place)
{
	return t->frames.rows[traces_stack(t, row)[place]].label;
}

static void stacks_are_named_by_own_code(void **unused)
{
	const struct traces_options options = {.names = FRAMES_SHORT, .fold = true};
	struct profile *p = profile_make();
	struct totals totals;
	struct traces t;
	int64_t flat = 0;

	assert_int_equal(traces_init(&t, &options, p, 1), 0);
	assert_int_equal(traces_add(&t, p, 0), 0);
	assert_int_equal(row_label_choose(&t), 0);
	assert_int_equal(t.row_count, STACK_COUNT);
	for (size_t row = 0; row < STACK_COUNT; row++) {
		assert_string_equal(name_at(&t, row, t.rows[row].head), stacks[row].head);
		if (stacks[row].through)
			assert_string_equal(name_at(&t, row, t.rows[row].through), stacks[row].through);
		else
			assert_int_equal(t.rows[row].head, 0);
	}
	assert_int_equal(totals_make(&totals, &t, 0, MEASURE_INUSE), 0);
	for (size_t i = 0; i < totals.count; i++)
		flat += totals.rows[i].flat.value;
	assert_int_equal(flat, (1 << STACK_COUNT) - 1);
	assert_int_equal(totals.sum.value, flat);
	totals_fini(&totals);
	traces_fini(&t);
	profile_free(p);
}

static void callers_and_callee_of_a_row(void **unused)
{
	static const char *const near[] = {"std::a", "std::b", "load", "serve", "main", NULL},
	                         *const far[] = {"xmalloc", "load", "serve", "main", NULL};
	const struct traces_options options = {.names = FRAMES_SHORT, .fold = true};
	struct profile *p = profile_new();
	double values[2] = {300, 100};
	struct callers callers;
	struct traces t;

	profile_add_sample_type(p, "inuse_objects", "count");
	profile_add_sample_type(p, "inuse_space", "bytes");
	stack_put(p, near, 300);
	stack_put(p, far, 100);
	assert_int_equal(traces_init(&t, &options, p, 1), 0);
	assert_int_equal(traces_add(&t, p, 0), 0);
	assert_int_equal(row_label_choose(&t), 0);
	assert_int_equal(callers_find(&callers, &t, values, traces_stack(&t, 0)[t.rows[0].head]), 0);
	assert_string_equal(t.frames.rows[callers.through].label, "std::b");
	assert_true(callers.through_share == 0.75);
	assert_int_equal(callers.count, 2);
	assert_string_equal(t.frames.rows[callers.frames[0]].label, "serve");
	assert_true(callers.shares[1] == 1);
	traces_fini(&t);
	profile_free(p);
}

/* Between the callers of a script's function is its interpreter; between it and what allocates, a library. */
static void callers_and_callee_of_a_script(void **unused)
{
	static const char *const stack[] = {"PyArray_New", "_PyEval_EvalFrameDefault",
	    "|py::inner:/usr/lib/python3/dist-packages/pandas/take.py", "_PyEval_EvalFrameDefault",
	    "|py::take:/usr/lib/python3/dist-packages/pandas/take.py", "_PyEval_EvalFrameDefault",
	    "|py::build:/srv/app.py", "_PyEval_EvalFrameDefault", "|py::serve:/srv/app.py", "Py_RunMain",
	    NULL};
	const struct traces_options options = {.names = FRAMES_SHORT, .fold = true};
	struct profile *p = profile_new();
	double values[1] = {300};
	struct callers callers;
	struct traces t;

	profile_add_sample_type(p, "inuse_objects", "count");
	profile_add_sample_type(p, "inuse_space", "bytes");
	stack_put(p, stack, 300);
	assert_int_equal(traces_init(&t, &options, p, 1), 0);
	assert_int_equal(traces_add(&t, p, 0), 0);
	assert_int_equal(row_label_choose(&t), 0);
	assert_int_equal(callers_find(&callers, &t, values, traces_stack(&t, 0)[t.rows[0].head]), 0);
	assert_string_equal(t.frames.rows[callers.through].label, "PyArray_New");
	assert_true(callers.library_share == 1);
	assert_string_equal(
	    t.frames.rows[callers.library].label, "py::take:/usr/lib/python3/dist-packages/pandas/take.py");
	assert_int_equal(callers.count, 1);
	assert_string_equal(t.frames.rows[callers.frames[0]].label, "py::serve:/srv/app.py");
	traces_fini(&t);
	profile_free(p);
}

/* Hidden frames leave their bytes, also where a stack has no others. */
static void hidden_frames_leave_their_bytes(void **unused)
{
	struct filter filter = {0};
	const struct traces_options options = {.names = FRAMES_SHORT, .filter = &filter};
	struct profile *p = profile_make();
	struct traces t;
	int64_t sum = 0;
	char error[256];

	assert_int_equal(pattern_new("load|walk|main|lost", 0, &filter.hide, error, sizeof(error)), 0);
	assert_int_equal(traces_init(&t, &options, p, 1), 0);
	assert_int_equal(traces_add(&t, p, 0), 0);
	for (size_t row = 0; row < t.row_count; row++) {
		assert_true(t.rows[row].depth > 0);
		sum += traces_value(&t, row, 0, MEASURE_INUSE);
		for (uint32_t i = 0; i < t.rows[row].depth; i++)
			assert_null(strstr(name_at(&t, row, i), "load_users"));
	}
	assert_string_equal(name_at(&t, 0, 0), "[hidden]");
	assert_int_equal(sum, (1 << STACK_COUNT) - 1);
	traces_fini(&t);
	pattern_free(filter.hide);
	profile_free(p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(roles_of_frames),
	    cmocka_unit_test(stacks_are_named_by_own_code),
	    cmocka_unit_test(callers_and_callee_of_a_row),
	    cmocka_unit_test(callers_and_callee_of_a_script),
	    cmocka_unit_test(hidden_frames_leave_their_bytes),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
