/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Is a Rust symbol (v0 mangling) harmless to demangle?
 *
 * libiberty loops once for each lifetime that a binder declares, and the symbol chooses the number: 20
 * characters make it run for years without printing anything, so no limit on the output helps (found by
 * tests/fuzz/symbol.c). This parser follows the grammar of RFC 2603 and accepts symbols that a compiler could
 * have written: binders of a few lifetimes, bounded depth, back references only to where a path, type or
 * constant has begun.
 */
#ifndef SAMPLER_SYMBOL_RUSTSYM_H
#define SAMPLER_SYMBOL_RUSTSYM_H

#include <stdbool.h>

enum { RUSTSYM_LENGTH_MAX = 16 * 1024 };

/* symbol begins with _R and has no vendor suffix (.llvm.123). */
bool rustsym_is_plausible(const char *symbol);

#endif
