/* SPDX-License-Identifier: Apache-2.0 */
/*
 * From linker symbols to readable names: C++ (Itanium) and Rust (both manglings) through libiberty, in
 * pprof's style: no parameters, no return type, template arguments kept, no Rust hash, no clone suffix
 * (.cold, .part.0, .isra.0, .constprop.0, .lto_priv.0, .llvm.123: the same function to its author).
 */
#ifndef SAMPLER_SYMBOL_DEMANGLE_H
#define SAMPLER_SYMBOL_DEMANGLE_H

#include <stdbool.h>
#include <stddef.h>

enum {
	DEMANGLE_SYMBOL_MAX = 16 * 1024, /* longer symbols are not demangled */
	DEMANGLE_STACK_BYTES = 16 << 20, /* the worst that was found takes 3.5 MiB */
	DEMANGLE_NAME_MAX =
	    8 * 1024, /* a name that grows beyond (a few bytes can encode gigabytes) ends in ... */
};

/*
 * Writes the name into out, always terminated. True when out differs from symbol. libiberty calls itself for
 * each character of a hostile symbol at worst, so this takes up to DEMANGLE_STACK_BYTES of stack.
 */
bool demangle_name(const char *symbol, char out[DEMANGLE_NAME_MAX]);

/* Length of symbol without its version (@GLIBC_2.2.5) and clone suffixes. */
size_t demangle_base_length(const char *symbol);

/* Is this text mangled by C++ or Rust? Looks at the first characters only. */
bool demangle_is_mangled(const char *symbol);

#endif
