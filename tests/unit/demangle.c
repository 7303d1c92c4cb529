/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sampler/symbol/demangle.h"

static void expect(const char *symbol, const char *wanted)
{
	char name[DEMANGLE_NAME_MAX];
	bool differs = demangle_name(symbol, name);

	assert_string_equal(name, wanted);
	assert_int_equal(differs, strcmp(symbol, wanted) != 0);
}

static void cxx_names_lose_parameters_and_return_type_and_keep_template_arguments(void **state)
{
	expect("_ZN3app5CacheIdE4fillEPKd", "app::Cache<double>::fill");
	expect("_Z3fooIiET_S0_", "foo<int>");
	expect("_ZNKSt6vectorIiSaIiEE4sizeEv", "std::vector<int, std::allocator<int> >::size");
	expect("_ZN3FooC4Ev", "Foo::Foo");
	expect("_ZNK3FoocvbEv", "Foo::operator bool");
	expect("_Znwm", "operator new");
	expect("_ZN12_GLOBAL__N_13runEv", "(anonymous namespace)::run");
	expect("_ZZ4mainENKUliE_clEi", "main::{lambda(int)#1}::operator()");
	expect("_ZN3foo3barB5cxx11Ev", "foo::bar[abi:cxx11]");
}

static void rust_names_lose_their_hash(void **state)
{
	expect("_ZN4core3fmt9Formatter3pad17h0123456789abcdefE", "core::fmt::Formatter::pad");
	expect("_RNvCs1234_7mycrate3foo", "mycrate::foo");
	expect("_ZN4core3fmt9Formatter3pad17h0123456789abcdefE.llvm.1234", "core::fmt::Formatter::pad");
	expect("_RNvCs1234_7mycrate3foo.llvm.99", "mycrate::foo");
	expect("_ZN58_$LT$alloc..string..String$u20$as$u20$core..fmt..Debug$GT$3fmt17h0123456789abcdefE",
	    "<alloc::string::String as core::fmt::Debug>::fmt");
}

static void c_names_stay(void **state)
{
	expect("main", "main");
	expect("_start", "_start");
	expect("_ZNotReally", "_ZNotReally");
	expect("_R", "_R");
	expect("_Z", "_Z");
	expect("", "");
	expect("@@", "@@");
}

static void clone_suffixes_and_versions_go(void **state)
{
	expect("fold.part.0", "fold");
	expect("fold.isra.0.cold", "fold");
	expect("fold.constprop.3.part.1", "fold");
	expect("fold.cold.7", "fold");
	expect("fold.lto_priv.12", "fold");
	expect("fold.__part.2", "fold"); /* clang -fbasic-block-sections */
	expect("_ZN3app3runEi.__part.11", "app::run");
	expect("memcpy@@GLIBC_2.14", "memcpy");
	expect("_ZN3app3runEi.cold", "app::run");
	expect("_ZN3app3runEi.isra.0", "app::run");
	expect("_ZNSt6vectorIiSaIiEE4sizeEv@@GLIBCXX_3.4", "std::vector<int, std::allocator<int> >::size");
}

/* Dots are part of Go's names, and of GCC's outlined functions. */
static void dots_that_are_no_suffix_stay(void **state)
{
	expect("main.part", "main.part");
	expect("runtime.clone", "runtime.clone");
	expect("main.(*T).Grow", "main.(*T).Grow");
	expect("loop._omp_fn.0", "loop._omp_fn.0");
	expect("x.1", "x.1");
	expect(".cold", ".cold");
	expect("..cold", ".");
}

/*
 * What rustc writes: generics, closures, trait objects, function types, constants, back references,
 * punycode.
 */
static void rust_v0_names_of_all_kinds_come_out(void **state)
{
	expect("_RNvMs4_NtCslNYArtu3iFV_5alloc7raw_vecNtB5_11RawVecInner14grow_amortizedCsjrHSEGnQ3l9_3std",
	    "<alloc::raw_vec::RawVecInner>::grow_amortized");
	expect("_RNCNvC4demo4main0", "demo::main::{closure#0}");
	expect("_RINvC4demo3runDG_INtC4core2FnTRL0_hEEEL_E", "demo::run::<dyn for<'a> core::Fn<(&'a u8,)>>");
	expect("_RINvC4demo3runFG_RL0_eEuE", "demo::run::<for<'a> fn(&'a str)>");
	expect("_RINvC4demo3runFUKCjEuE", "demo::run::<unsafe extern \"C\" fn(usize)>");
	expect("_RINvC4demo3runKj1f_Kb1_E", "demo::run::<31, true>");
	expect("_RINvC4demo3runAhj8_E", "demo::run::<[u8; 8]>");
	expect("_RINvNtC4demo1a3runNtB4_1TE", "demo::a::run::<demo::T>");
	expect("_RNvC4demo3run.something", "demo::run");
	expect("_RNvC04none", "::none");
	expect("_RC0", "_RC0");
}

/* libiberty would count to 62^20 for the binder, without a word. */
static void a_binder_without_end_is_not_counted(void **state)
{
	expect("_RINvC4demo3runFGzzzzzzzzzz_EuE", "_RINvC4demo3runFGzzzzzzzzzz_EuE");
	expect("_RNvMs4_NvMs4_NtCslF_5alloc7rFFFFFFFFFFFFFFFFFFFFFFNtCslF_"
	       "5alloc7rFFFFFFFFFFFFFFFFFFFFFFFFGFFFFFB1_1",
	    "_RNvMs4_NvMs4_NtCslF_5alloc7rFFFFFFFFFFFFFFFFFFFFFFNtCslF_"
	    "5alloc7rFFFFFFFFFFFFFFFFFFFFFFFFGFFFFFB1_1");
	/* hidden in an identifier, to be reached by a back reference only */
	expect("_RINvC4demo14FGzzzzzzzz_EuEB9_E", "_RINvC4demo14FGzzzzzzzz_EuEB9_E");
	/* an identifier that merely looks like one */
	expect("_RNvC4demo10GTKzzzzzz_", "demo::GTKzzzzzz_");
}

static void rust_symbols_that_break_off_stay(void **state)
{
	static const char whole[] = "_RINvNtC4demo1a3runNtB4_1TDG_INtC4core2FnTRL0_hEEEL_Kj1f_E";
	char name[DEMANGLE_NAME_MAX], symbol[sizeof(whole)];

	assert_true(demangle_name(whole, name));
	for (size_t length = 2; length < strlen(whole); length++) {
		memcpy(symbol, whole, length);
		symbol[length] = '\0';
		demangle_name(symbol, name);
		assert_string_equal(name, symbol);
	}
}

/*
 * f<A<i,i>, A<S1_,S1_>, A<S2_,S2_>, ...>: every argument is twice as long as the one before, 30 of them
 * 2^30.
 */
static void a_symbol_that_explodes_is_cut(void **state)
{
	static const char digits[] = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ";
	char symbol[1024], name[DEMANGLE_NAME_MAX];
	int length = sprintf(symbol, "_Z1fI1AIiiE");

	for (int i = 1; i < 30; i++)
		length += sprintf(symbol + length, "S0_IS%c_S%c_E", digits[i], digits[i]);
	strcpy(symbol + length, "Evv");
	assert_true(demangle_name(symbol, name));
	assert_int_equal(strlen(name), DEMANGLE_NAME_MAX - 1);
	assert_memory_equal(name, "f<A<int, int>, A<A<int, int>", 28);
	assert_string_equal(name + DEMANGLE_NAME_MAX - 4, "...");
}

/* mid<B<1000>, B<1001>, ...>: libiberty alone refuses more than 1,024 characters. */
static void long_symbols_are_demangled(void **state)
{
	char symbol[DEMANGLE_SYMBOL_MAX], name[DEMANGLE_NAME_MAX], end[64];

	(void)state;
	for (int arguments = 80; arguments <= 1200; arguments += 140) {
		int length = sprintf(symbol, "_Z3midIJ1BILi1000EE");

		for (int i = 1; i < arguments; i++)
			length += sprintf(symbol + length, "S0_ILi%dEE", 1000 + i);
		strcpy(symbol + length, "EEvv");
		assert_true(demangle_name(symbol, name));
		assert_memory_equal(name, "mid<B<1000>, B<1001>, ", 22);
		snprintf(end, sizeof(end), "B<%d> >", 1000 + arguments - 1);
		if (strlen(name) < DEMANGLE_NAME_MAX - 1)
			assert_string_equal(name + strlen(name) - strlen(end), end);
		else
			assert_string_equal(name + strlen(name) - 3, "...");
	}
}

/* The symbols that were found to take most stack. */
static void *demangle_deep_symbols(void *context)
{
	static const char *const steps[] = {"F", "GR", "P", "R", "FvP", "il", "nw", "K1AI"};
	static char symbol[DEMANGLE_SYMBOL_MAX], name[DEMANGLE_NAME_MAX];

	for (size_t i = 0; i < sizeof(steps) / sizeof(steps[0]); i++) {
		strcpy(symbol, "_Z1fI");
		for (size_t at = 5; at + 8 < sizeof(symbol); at += strlen(steps[i]))
			strcpy(symbol + at, steps[i]);
		demangle_name(symbol, name);
		*(bool *)context = *(bool *)context && name[0] && strlen(name) < DEMANGLE_NAME_MAX;
	}
	return NULL;
}

/* On a stack of the size that the reader asks for; a page without access lies below it. */
static void deep_symbols_need_a_bounded_stack(void **state)
{
	pthread_attr_t attributes;
	pthread_t thread;
	bool good = true;

	(void)state;
	pthread_attr_init(&attributes);
	assert_int_equal(pthread_attr_setstacksize(&attributes, DEMANGLE_STACK_BYTES), 0);
	assert_int_equal(pthread_create(&thread, &attributes, demangle_deep_symbols, &good), 0);
	assert_int_equal(pthread_join(thread, NULL), 0);
	pthread_attr_destroy(&attributes);
	assert_true(good);
}

static void long_symbols_are_copied_up_to_the_limit(void **state)
{
	size_t length = 100000;
	char *symbol = malloc(length + 1), name[DEMANGLE_NAME_MAX];

	memset(symbol, 'N', length);
	symbol[length] = '\0';
	memcpy(symbol, "_Z", 2);
	assert_true(demangle_name(symbol, name));
	assert_int_equal(strlen(name), DEMANGLE_NAME_MAX - 1);
	free(symbol);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(cxx_names_lose_parameters_and_return_type_and_keep_template_arguments),
	    cmocka_unit_test(rust_names_lose_their_hash),
	    cmocka_unit_test(c_names_stay),
	    cmocka_unit_test(clone_suffixes_and_versions_go),
	    cmocka_unit_test(dots_that_are_no_suffix_stay),
	    cmocka_unit_test(rust_v0_names_of_all_kinds_come_out),
	    cmocka_unit_test(a_binder_without_end_is_not_counted),
	    cmocka_unit_test(rust_symbols_that_break_off_stay),
	    cmocka_unit_test(a_symbol_that_explodes_is_cut),
	    cmocka_unit_test(long_symbols_are_demangled),
	    cmocka_unit_test(deep_symbols_need_a_bounded_stack),
	    cmocka_unit_test(long_symbols_are_copied_up_to_the_limit),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
