/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Interned strings, and other memory with the same lifetime.
 *
 * Every string is stored once, so equal strings are equal pointers. Input is hostile (symbol tables, DWARF);
 * output is valid UTF-8 without control characters and at most STRING_POOL_LENGTH_MAX bytes long, as profiles
 * and terminals need it.
 */
#ifndef SAMPLER_SYMBOL_STRING_POOL_H
#define SAMPLER_SYMBOL_STRING_POOL_H

#include <stddef.h>

enum { STRING_POOL_LENGTH_MAX = 16 * 1024 };

struct string_pool;

struct string_pool *string_pool_new(void);
void string_pool_free(struct string_pool *names);

/*
 * Limits how many more bytes of strings and memory can be taken. Calls beyond the limit fail. There is no
 * limit at first.
 */
void string_pool_limit(struct string_pool *names, size_t bytes);

/* The interned copy of text[0..length), owned by `names`. NULL if out of memory or beyond the limit. */
const char *string_pool_add(struct string_pool *names, const char *text, size_t length);

/* Uninitialized memory, aligned for any type, freed with `names`. NULL if out of memory or beyond the
 * limit. */
void *string_pool_alloc(struct string_pool *names, size_t bytes);

#endif
