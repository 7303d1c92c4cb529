/* SPDX-License-Identifier: Apache-2.0 */
#include "sampler/symbol/rustsym.h"

#include <stdint.h>
#include <string.h>

enum { DEPTH_MAX = 256, LIFETIMES_MAX = 1000 };

struct walk {
	const char *text; /* after _R; back references count from here */
	size_t at, length;
	unsigned depth;
	uint64_t begun[RUSTSYM_LENGTH_MAX / 64]; /* bit i: a path, type or constant begins at text[i] */
};

static bool walk_path(struct walk *walk);
static bool walk_type(struct walk *walk);

static char peek(const struct walk *walk)
{
	return walk->at < walk->length ? walk->text[walk->at] : '\0';
}

static bool take(struct walk *walk, char wanted)
{
	if (peek(walk) != wanted)
		return false;
	walk->at++;
	return true;
}

static int digit_62(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	if (c >= 'a' && c <= 'z')
		return c - 'a' + 10;
	if (c >= 'A' && c <= 'Z')
		return c - 'A' + 36;
	return -1;
}

/* "_" is 0, "0_" is 1, "Z_" is 62. */
static bool walk_number(struct walk *walk, uint64_t *number)
{
	uint64_t value = 0;

	*number = 0;
	if (take(walk, '_'))
		return true;
	for (; !take(walk, '_'); walk->at++) {
		int digit = digit_62(peek(walk));

		if (digit < 0 || value > UINT64_MAX / 62 - 1)
			return false;
		value = value * 62 + (unsigned)digit;
	}
	*number = value + 1;
	return true;
}

static bool walk_optional(struct walk *walk, char tag)
{
	uint64_t number;

	return !take(walk, tag) || walk_number(walk, &number);
}

static bool walk_bytes(struct walk *walk)
{
	size_t count = 0;

	take(walk, 'u');
	if (peek(walk) < '0' || peek(walk) > '9')
		return false;
	if (!take(walk, '0'))
		for (; peek(walk) >= '0' && peek(walk) <= '9' && count <= walk->length; walk->at++)
			count = count * 10 + (size_t)(peek(walk) - '0');
	take(walk, '_');
	if (count > walk->length - walk->at)
		return false;
	walk->at += count;
	return true;
}

static bool walk_identifier(struct walk *walk)
{
	return walk_optional(walk, 's') && walk_bytes(walk);
}

/* The B has been read; a reference to its own position would never end. */
static bool walk_reference(struct walk *walk, size_t own)
{
	uint64_t target;

	return walk_number(walk, &target) && target < own && (walk->begun[target / 64] >> target % 64 & 1);
}

static bool walk_binder(struct walk *walk)
{
	uint64_t lifetimes;

	return !take(walk, 'G') || (walk_number(walk, &lifetimes) && lifetimes < LIFETIMES_MAX);
}

static bool begin(struct walk *walk)
{
	if (walk->at >= walk->length || ++walk->depth > DEPTH_MAX)
		return false;
	walk->begun[walk->at / 64] |= (uint64_t)1 << walk->at % 64;
	return true;
}

static bool walk_constant(struct walk *walk)
{
	size_t own = walk->at;

	if (!begin(walk))
		return false;
	walk->depth--;
	if (take(walk, 'p'))
		return true;
	if (take(walk, 'B'))
		return walk_reference(walk, own);
	if (peek(walk) < 'a' || peek(walk) > 'z')
		return false;
	walk->at++;
	take(walk, 'n');
	while ((peek(walk) >= '0' && peek(walk) <= '9') || (peek(walk) >= 'a' && peek(walk) <= 'f'))
		walk->at++;
	return take(walk, '_');
}

static bool walk_generics(struct walk *walk)
{
	while (!take(walk, 'E')) {
		uint64_t lifetime;

		if (take(walk, 'L')       ? !walk_number(walk, &lifetime)
		        : take(walk, 'K') ? !walk_constant(walk)
		                          : !walk_type(walk))
			return false;
	}
	return true;
}

static bool walk_types(struct walk *walk)
{
	while (!take(walk, 'E'))
		if (!walk_type(walk))
			return false;
	return true;
}

static bool walk_function(struct walk *walk)
{
	if (!walk_binder(walk))
		return false;
	take(walk, 'U');
	if (take(walk, 'K') && !take(walk, 'C') && !walk_bytes(walk))
		return false;
	return walk_types(walk) && walk_type(walk);
}

static bool walk_dyn(struct walk *walk)
{
	uint64_t lifetime;

	if (!walk_binder(walk))
		return false;
	while (!take(walk, 'E')) {
		if (!walk_path(walk))
			return false;
		while (take(walk, 'p'))
			if (!walk_bytes(walk) || !walk_type(walk))
				return false;
	}
	return take(walk, 'L') && walk_number(walk, &lifetime);
}

static bool walk_path_after(struct walk *walk, char tag, size_t own)
{
	switch (tag) {
	case 'C':
		return walk_identifier(walk);
	case 'M':
		return walk_optional(walk, 's') && walk_path(walk) && walk_type(walk);
	case 'X':
		return walk_optional(walk, 's') && walk_path(walk) && walk_type(walk) && walk_path(walk);
	case 'Y':
		return walk_type(walk) && walk_path(walk);
	case 'N':
		if (digit_62(peek(walk)) < 10)
			return false;
		walk->at++;
		return walk_path(walk) && walk_identifier(walk);
	case 'I':
		return walk_path(walk) && walk_generics(walk);
	case 'B':
		return walk_reference(walk, own);
	default:
		return false;
	}
}

static bool walk_path(struct walk *walk)
{
	size_t own = walk->at;
	bool ok;

	if (!begin(walk))
		return false;
	walk->at++;
	ok = walk_path_after(walk, walk->text[own], own);
	walk->depth--;
	return ok;
}

static bool walk_type_after(struct walk *walk, char tag, size_t own)
{
	switch (tag) {
	case 'A':
		return walk_type(walk) && walk_constant(walk);
	case 'S':
	case 'P':
	case 'O':
		return walk_type(walk);
	case 'R':
	case 'Q':
		return walk_optional(walk, 'L') && walk_type(walk);
	case 'T':
		return walk_types(walk);
	case 'F':
		return walk_function(walk);
	case 'D':
		return walk_dyn(walk);
	default:
		return (tag >= 'a' && tag <= 'z') || walk_path_after(walk, tag, own);
	}
}

static bool walk_type(struct walk *walk)
{
	size_t own = walk->at;
	bool ok;

	if (!begin(walk))
		return false;
	walk->at++;
	ok = walk_type_after(walk, walk->text[own], own);
	walk->depth--;
	return ok;
}

bool rustsym_is_plausible(const char *symbol)
{
	struct walk walk = {.text = symbol + 2, .length = strlen(symbol) - 2};

	if (walk.length >= RUSTSYM_LENGTH_MAX || !walk_path(&walk))
		return false;
	/* The crate for which a generic function was instantiated. */
	return walk.at == walk.length || (walk_path(&walk) && walk.at == walk.length);
}
