/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The kernel's functions by address, from /proc/kallsyms: lines `ADDRESS TYPE NAME [MODULE]`, numbers in hex.
 *
 * A user who may not see addresses (kernel.kptr_restrict, no CAP_SYSLOG) reads zeros, and gets no symbols.
 * Parsing is pure.
 */
#ifndef SAMPLER_SYMBOL_KERNEL_SYMBOLS_H
#define SAMPLER_SYMBOL_KERNEL_SYMBOLS_H

#include <stddef.h>
#include <stdint.h>

#define KERNEL_SYMBOLS_PATH "/proc/kallsyms"

enum { KERNEL_SYMBOLS_BYTES_MAX = 64 << 20 }; /* of the text; the rest is not read */

struct kernel_symbols;

/* Takes the text: from malloc, `bytes` bytes and a NUL. NULL if out of memory. */
struct kernel_symbols *kernel_symbols_parse(char *text, size_t bytes);

/* NULL when the file cannot be read or there is not enough memory. */
struct kernel_symbols *kernel_symbols_open(const char *path);
void kernel_symbols_free(struct kernel_symbols *symbols); /* NULL is fine */

size_t kernel_symbols_count(const struct kernel_symbols *symbols);

/* The last function that begins at or below `address`, owned by the symbols. NULL if there is none. */
const char *kernel_symbols_find(const struct kernel_symbols *symbols, uint64_t address);

#endif
