/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Interned strings, and other memory that lives and dies with them.
 *
 * Every string is stored once, so equal strings are equal pointers. What comes in is hostile (symbol tables,
 * DWARF); what comes out is valid UTF-8 without control characters and at most NAMES_LENGTH_MAX bytes long,
 * as profiles and terminals need it.
 */
#ifndef SAMPLER_NAMES_H
#define SAMPLER_NAMES_H

#include <stddef.h>

enum { NAMES_LENGTH_MAX = 16 * 1024 };

struct names;

struct names *names_new(void);
void names_free(struct names *names);

/*
 * How many more bytes of strings and memory may be taken; what would exceed it fails. At first there is no
 * limit.
 */
void names_limit(struct names *names, size_t bytes);

/* The interned copy of text[0..length), owned by names; NULL when out of memory or limit. */
const char *names_add(struct names *names, const char *text, size_t length);

/* Uninitialized memory, aligned for any type, freed with names; NULL when out of memory or limit. */
void *names_alloc(struct names *names, size_t bytes);

#endif
