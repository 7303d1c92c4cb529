/* SPDX-License-Identifier: Apache-2.0 */
/* Short names: a table of what demanglers write, and names that are no names. */
#include "pprof/text/short_name.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static const char *const names[][2] = {
    {"main", "main"},
    {"", ""},
    /* template arguments */
    {"std::vector<int, std::allocator<int> >::_M_realloc_insert<int const&>",
        "std::vector::_M_realloc_insert"},
    {"std::map<int, std::vector<char> >::operator[]", "std::map::operator[]"},
    {"app::Cache<double>::fill", "app::Cache::fill"},
    {"A<(B)1, ((1)>(2)), &(f)>::g", "A::g"},
    {"A<&X::operator<, &X::operator->>::g", "A::g"},
    {"std::function<void (int)>::operator()", "std::function::operator()"},
    {"std::_Function_handler<void (), main::{lambda()#1}>::_M_invoke", "std::_Function_handler::_M_invoke"},
    {"Foo<int>::~Foo", "Foo::~Foo"},
    /* operators */
    {"operator<", "operator<"},
    {"operator< <int>", "operator<"},
    {"app::operator<< <char, std::char_traits<char> >", "app::operator<<"},
    {"X::operator<=>", "X::operator<=>"},
    {"X<int>::operator->", "X::operator->"},
    {"X<int>::operator->*", "X::operator->*"},
    {"X::operator>><int>", "X::operator>>"},
    {"X::operator><int>", "X::operator>"},
    {"X::operator()<int>", "X::operator()"},
    {"X::operator()(int) const", "X::operator()"},
    {"operator\"\" _size", "operator\"\" _size"},
    {"operator/<int>", "operator/"},
    {"operator new", "operator new"},
    {"operator new[](unsigned long)", "operator new[]"},
    {"X::operator std::vector<int>() const", "X::operator std::vector"},
    {"X::operator unsigned long<int>() const", "X::operator unsigned long"},
    {"operators<int>", "operators"},
    {"my_operator<int>", "my_operator"},
    /* parameters and return types */
    {"void app::load<int>(int const&)", "app::load"},
    {"std::vector<int> app::load<int>(std::vector<int>, int (*)(char))", "app::load"},
    {"app::load(std::map<int, int> const&) const &", "app::load"},
    {"app::load(int) [clone .part.0]", "app::load"},
    {"unsigned long value", "unsigned long value"},
    {"f(int)::{lambda(int)#1}::operator()<int>(int) const", "f::{lambda(int)#1}::operator()"},
    {"f(int) const::{lambda(std::vector<int>)#1}::operator()", "f::{lambda(std::vector)#1}::operator()"},
    {"(anonymous namespace)::Cache<int>::put(int)", "(anonymous namespace)::Cache::put"},
    {"app::(anonymous namespace)::put<int>", "app::(anonymous namespace)::put"},
    {"main::<lambda(int)>::operator()", "main::<lambda(int)>::operator()"},
    {"std::string[abi:cxx11]::f<int>", "std::string[abi:cxx11]::f"},
    {"void java.util.HashMap.put(java.lang.Object, int)", "java.util.HashMap.put"},
    /* Rust */
    {"<alloc::vec::Vec<T> as core::clone::Clone>::clone", "<alloc::vec::Vec as core::clone::Clone>::clone"},
    {"<alloc::vec::Vec<T,A> as core::iter::FromIterator<(K, V)>>::from_iter",
        "<alloc::vec::Vec as core::iter::FromIterator>::from_iter"},
    {"<T as app::Trait>::f", "<T as app::Trait>::f"},
    {"<&mut F as core::ops::function::FnOnce<A>>::call_once",
        "<&mut F as core::ops::function::FnOnce>::call_once"},
    {"<fn(u8) -> app::Row<u8> as app::Trait<u8>>::f", "<fn(u8) -> app::Row as app::Trait>::f"},
    {"<alloc::vec::Vec<u8>>::push", "<alloc::vec::Vec>::push"},
    {"core::ptr::drop_in_place::<alloc::vec::Vec<u8>>", "core::ptr::drop_in_place"},
    {"core::ptr::drop_in_place<[alloc::string::String]>", "core::ptr::drop_in_place"},
    {"app::load::<u8>::{{closure}}", "app::load::{{closure}}"},
    {"app::load::{closure#0}::<u8>", "app::load::{closure#0}"},
    {"core::fmt::num::<impl core::fmt::Display for app::Row<u8>>::fmt",
        "core::fmt::num::<impl core::fmt::Display for app::Row>::fmt"},
    /* others stay */
    {"<unknown>", "<unknown>"},
    {"[libfoo.so]", "[libfoo.so]"},
    {"libfoo.so.1+0x1a2b", "libfoo.so.1+0x1a2b"},
    {"py::<module>:/srv/load.py", "py::<module>:/srv/load.py"},
    {"JS:^loadUsers /srv/a<b>.js:3:1", "loadUsers /srv/a<b>.js:3:1"},
    {"LazyCompile:*<anonymous> /srv/x.js:1:1", "<anonymous> /srv/x.js:1:1"},
    {"JS:~ /srv/x.js:1:1", "/srv/x.js:1:1"},
    {"Eval:~ /srv/x.js:1:1", "/srv/x.js:1:1"},
    {"Script:~ /srv/x.js:1:1", "/srv/x.js:1:1"},
    {"JS:+'load /srv/x.js:1:1", "load /srv/x.js:1:1"},
    {"JS:*", "JS:*"},
    {"JS:*'", "JS:*'"},
    {"JS:~ ", "JS:~ "},
    {"JS:load /srv/x.js:1:1", "JS:load /srv/x.js:1:1"},
    /* as HotSpot's jcmd PID Compiler.perfmap writes them */
    {"void java.nio.DirectByteBuffer.<init>(int)", "java.nio.DirectByteBuffer.<init>"},
    {"void Svc.<clinit>()", "Svc.<clinit>"},
    {"java.nio.ByteBuffer java.nio.ByteBuffer.allocateDirect(int)", "java.nio.ByteBuffer.allocateDirect"},
    {"byte[] java.util.Arrays.copyOf(byte[], int)", "java.util.Arrays.copyOf"},
    {"java.lang.Object[][] Svc.table(java.util.Map, java.lang.Object[][])", "Svc.table"},
    {"void java.nio.DirectByteBuffer$Deallocator.<init>(long, long, int)",
        "java.nio.DirectByteBuffer$Deallocator.<init>"},
    {"void Svc$$Lambda$1/0x00007fc758000a08.run()", "Svc$$Lambda$1.run"},
    {"java.lang.Object java.lang.invoke.LambdaForm$MH/0x0000000800c00400.invoke(java.lang.Object)",
        "java.lang.invoke.LambdaForm$MH.invoke"},
    {"StubRoutines (1)", "StubRoutines (1)"},
    {"I2C/C2I adapters", "I2C/C2I adapters"},
    {"net/0x1.run", "net/0x1.run"},
    {"a.<init", "a.<init"},
    {"RegExp:a<b", "RegExp:a<b"},
    {"net/http.(*conn).serve", "net/http.(*conn).serve"},
    {"main.(*Server).Handle", "main.(*Server).Handle"},
    {"main.Map[go.shape.struct { F func(int) }]", "main.Map[go.shape.struct { F func(int) }]"},
    {"main.F[<-chan int]", "main.F[<-chan int]"},
    /* no names */
    {"a<b", "a<b"},
    {"a>b", "a>b"},
    {"f(", "f("},
    {"f(]", "f(]"},
    {"<", "<"},
    {"operator", "operator"},
    {"f<(>)", "f<(>)"},
};

static void names_are_shortened(void **unused)
{
	for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++) {
		char text[256];
		size_t length = short_name(names[i][0], strlen(names[i][0]), text);

		assert_string_equal(text, names[i][1]);
		assert_int_equal(length, strlen(text));
	}
}

static void the_names_of_short_names_are_short(void **unused)
{
	for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++) {
		char text[256];

		short_name(names[i][1], strlen(names[i][1]), text);
		assert_string_equal(text, names[i][1]);
	}
}

static uint64_t state = 0x9e3779b97f4a7c15;

static size_t draw(size_t below)
{
	state ^= state << 13;
	state ^= state >> 7;
	state ^= state << 17;
	return (size_t)((state * 0x2545f4914f6cdd1d) >> 32) % below;
}

/* Random rows of what names consist of, in blocks of exactly their size, which the sanitizers watch. */
static void any_bytes_stay_within_bounds(void **unused)
{
	static const char *const pieces[] = {"operator", "<", ">", "(", ")", "[", "]", "{", "}", "::", ":",
	    "->", "<<", " ", " const", " [clone ", "a", "std", "&", ",", "<impl ", "(anonymous namespace)",
	    "/", ".", "\xc3\xa4", "\"\"", "-", "#1"};

	for (int run = 0; run < 200000; run++) {
		char row[256];
		size_t length = 0, count = draw(14);

		for (size_t i = 0; i < count; i++) {
			const char *piece = pieces[draw(sizeof(pieces) / sizeof(*pieces))];

			memcpy(row + length, piece, strlen(piece));
			length += strlen(piece);
		}
		char *name = malloc(length ? length : 1), *text = malloc(length + 1);

		assert_non_null(name);
		assert_non_null(text);
		memcpy(name, row, length);
		size_t written = short_name(name, length, text);

		assert_true(written <= length && (written || !length));
		assert_int_equal(text[written], '\0');
		free(name);
		free(text);
	}
}

/* The worst rows of brackets, as long as is looked at. */
static void long_names_end(void **unused)
{
	static const char *const pieces[] = {
	    "<", "a<", "a()", "a<b>", "(", "a.<", "operator", " [clone ", "a() [clone "};
	size_t length = SHORT_NAME_MOST_BYTES;
	char *name = malloc(length), *text = malloc(length + 1);

	assert_non_null(name);
	assert_non_null(text);
	for (size_t i = 0; i < sizeof(pieces) / sizeof(*pieces); i++) {
		for (size_t at = 0; at < length; at++)
			name[at] = pieces[i][at % strlen(pieces[i])];
		assert_true(short_name(name, length, text) <= length);
	}
	free(name);
	free(text);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(names_are_shortened),
	    cmocka_unit_test(the_names_of_short_names_are_short),
	    cmocka_unit_test(any_bytes_stay_within_bounds),
	    cmocka_unit_test(long_names_end),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
