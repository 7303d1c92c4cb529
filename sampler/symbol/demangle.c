/* SPDX-License-Identifier: Apache-2.0 */
#include "sampler/symbol/demangle.h"

#include <ctype.h>
#include <setjmp.h>
#include <stdlib.h>
#include <string.h>

#include <libiberty/demangle.h>
#include <stdint.h>

/*
 * ---- is a Rust symbol (v0 mangling) harmless to demangle?
 *
 * libiberty loops once for each lifetime that a binder declares, and the symbol chooses the number: 20
 * characters make it run for years without printing anything, so no limit on the output helps (found by
 * tests/fuzz/symbol.c). This parser follows the grammar of RFC 2603 and accepts symbols that a compiler could
 * have written: binders of a few lifetimes, bounded depth, back references only to where a path, type or
 * constant has begun.
 */

enum { RUST_LENGTH_MAX = 16 * 1024, DEPTH_MAX = 256, LIFETIMES_MAX = 1000 };

struct parser {
	const char *text; /* after _R; back references count from here */
	size_t at, length;
	unsigned depth;
	uint64_t begun[RUST_LENGTH_MAX / 64]; /* bit i: a path, type or constant begins at text[i] */
};

static bool parse_path(struct parser *parser);
static bool parse_type(struct parser *parser);

static char peek(const struct parser *parser)
{
	return parser->at < parser->length ? parser->text[parser->at] : '\0';
}

static bool take(struct parser *parser, char wanted)
{
	if (peek(parser) != wanted)
		return false;
	parser->at++;
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
static bool parse_number(struct parser *parser, uint64_t *number)
{
	uint64_t value = 0;

	*number = 0;
	if (take(parser, '_'))
		return true;
	for (; !take(parser, '_'); parser->at++) {
		int digit = digit_62(peek(parser));

		if (digit < 0 || value > UINT64_MAX / 62 - 1)
			return false;
		value = value * 62 + (unsigned)digit;
	}
	*number = value + 1;
	return true;
}

static bool parse_optional(struct parser *parser, char tag)
{
	uint64_t number;

	return !take(parser, tag) || parse_number(parser, &number);
}

static bool parse_bytes(struct parser *parser)
{
	size_t count = 0;

	take(parser, 'u');
	if (peek(parser) < '0' || peek(parser) > '9')
		return false;
	if (!take(parser, '0'))
		for (; peek(parser) >= '0' && peek(parser) <= '9' && count <= parser->length; parser->at++)
			count = count * 10 + (size_t)(peek(parser) - '0');
	take(parser, '_');
	if (count > parser->length - parser->at)
		return false;
	parser->at += count;
	return true;
}

static bool parse_identifier(struct parser *parser)
{
	return parse_optional(parser, 's') && parse_bytes(parser);
}

/* The B has been read; a reference to its own position would never end. */
static bool parse_reference(struct parser *parser, size_t own)
{
	uint64_t target;

	return parse_number(parser, &target) && target < own &&
	    (parser->begun[target / 64] >> target % 64 & 1);
}

static bool parse_binder(struct parser *parser)
{
	uint64_t lifetimes;

	return !take(parser, 'G') || (parse_number(parser, &lifetimes) && lifetimes < LIFETIMES_MAX);
}

static bool begin(struct parser *parser)
{
	if (parser->at >= parser->length || ++parser->depth > DEPTH_MAX)
		return false;
	parser->begun[parser->at / 64] |= (uint64_t)1 << parser->at % 64;
	return true;
}

static bool parse_constant(struct parser *parser)
{
	size_t own = parser->at;

	if (!begin(parser))
		return false;
	parser->depth--;
	if (take(parser, 'p'))
		return true;
	if (take(parser, 'B'))
		return parse_reference(parser, own);
	if (peek(parser) < 'a' || peek(parser) > 'z')
		return false;
	parser->at++;
	take(parser, 'n');
	while ((peek(parser) >= '0' && peek(parser) <= '9') || (peek(parser) >= 'a' && peek(parser) <= 'f'))
		parser->at++;
	return take(parser, '_');
}

static bool parse_generics(struct parser *parser)
{
	while (!take(parser, 'E')) {
		uint64_t lifetime;

		if (take(parser, 'L')       ? !parse_number(parser, &lifetime)
		        : take(parser, 'K') ? !parse_constant(parser)
		                            : !parse_type(parser))
			return false;
	}
	return true;
}

static bool parse_types(struct parser *parser)
{
	while (!take(parser, 'E'))
		if (!parse_type(parser))
			return false;
	return true;
}

static bool parse_function(struct parser *parser)
{
	if (!parse_binder(parser))
		return false;
	take(parser, 'U');
	if (take(parser, 'K') && !take(parser, 'C') && !parse_bytes(parser))
		return false;
	return parse_types(parser) && parse_type(parser);
}

static bool parse_dyn(struct parser *parser)
{
	uint64_t lifetime;

	if (!parse_binder(parser))
		return false;
	while (!take(parser, 'E')) {
		if (!parse_path(parser))
			return false;
		while (take(parser, 'p'))
			if (!parse_bytes(parser) || !parse_type(parser))
				return false;
	}
	return take(parser, 'L') && parse_number(parser, &lifetime);
}

static bool parse_path_after(struct parser *parser, char tag, size_t own)
{
	switch (tag) {
	case 'C':
		return parse_identifier(parser);
	case 'M':
		return parse_optional(parser, 's') && parse_path(parser) && parse_type(parser);
	case 'X':
		return parse_optional(parser, 's') && parse_path(parser) && parse_type(parser) &&
		    parse_path(parser);
	case 'Y':
		return parse_type(parser) && parse_path(parser);
	case 'N':
		if (digit_62(peek(parser)) < 10)
			return false;
		parser->at++;
		return parse_path(parser) && parse_identifier(parser);
	case 'I':
		return parse_path(parser) && parse_generics(parser);
	case 'B':
		return parse_reference(parser, own);
	default:
		return false;
	}
}

static bool parse_path(struct parser *parser)
{
	size_t own = parser->at;
	bool ok;

	if (!begin(parser))
		return false;
	parser->at++;
	ok = parse_path_after(parser, parser->text[own], own);
	parser->depth--;
	return ok;
}

static bool parse_type_after(struct parser *parser, char tag, size_t own)
{
	switch (tag) {
	case 'A':
		return parse_type(parser) && parse_constant(parser);
	case 'S':
	case 'P':
	case 'O':
		return parse_type(parser);
	case 'R':
	case 'Q':
		return parse_optional(parser, 'L') && parse_type(parser);
	case 'T':
		return parse_types(parser);
	case 'F':
		return parse_function(parser);
	case 'D':
		return parse_dyn(parser);
	default:
		return (tag >= 'a' && tag <= 'z') || parse_path_after(parser, tag, own);
	}
}

static bool parse_type(struct parser *parser)
{
	size_t own = parser->at;
	bool ok;

	if (!begin(parser))
		return false;
	parser->at++;
	ok = parse_type_after(parser, parser->text[own], own);
	parser->depth--;
	return ok;
}

/* symbol begins with _R and has no vendor suffix (.llvm.123). */
static bool is_plausible_rust(const char *symbol)
{
	struct parser parser = {.text = symbol + 2, .length = strlen(symbol) - 2};

	if (parser.length >= RUST_LENGTH_MAX || !parse_path(&parser))
		return false;
	/* The crate for which a generic function was instantiated. */
	return parser.at == parser.length || (parse_path(&parser) && parser.at == parser.length);
}

/* ---- demangling */

struct output {
	char *text;
	size_t length;
	jmp_buf full;
};

/*
 * Substitutions let a hostile symbol of 100 bytes stand for gigabytes of text, and libiberty has no way to
 * stop: hence the longjmp out of it. Its v3 printer uses only automatic storage, so nothing leaks; the Rust
 * printer may leak one small buffer.
 */
static void collect(const char *text, size_t length, void *arg)
{
	struct output *output = arg;
	size_t room = DEMANGLE_NAME_MAX - 1 - output->length;

	if (length == 0) /* then text can be NULL */
		return;
	if (length > room) {
		memcpy(output->text + output->length, text, room);
		memcpy(output->text + DEMANGLE_NAME_MAX - 4, "...", 4);
		longjmp(output->full, 1);
	}
	memcpy(output->text + output->length, text, length);
	output->length += length;
	output->text[output->length] = '\0';
}

bool demangle_is_mangled(const char *symbol)
{
	return symbol[0] == '_' && (symbol[1] == 'Z' || symbol[1] == 'R' || strncmp(symbol, "___Z", 4) == 0);
}

/* Most suffixes always carry a number; a bare .part is a Go function called "part". */
static bool is_clone_suffix(const char *word, size_t length, bool numbered)
{
	static const char *const words[] = {"cold", "localalias", "part", "isra", "constprop", "lto_priv",
	    "llvm", "clone", "__uniq", "__part"};
	size_t count = numbered ? sizeof(words) / sizeof(words[0]) : 2;

	for (size_t i = 0; i < count; i++)
		if (strlen(words[i]) == length && memcmp(words[i], word, length) == 0)
			return true;
	return false;
}

static bool is_number(const char *word, size_t length)
{
	for (size_t i = 0; i < length; i++)
		if (!isdigit((unsigned char)word[i]))
			return false;
	return length > 0;
}

/*
 * Where the word after the last dot of symbol[0..length) starts; 0 or 1: there is no dot with something
 * before it.
 */
static size_t last_word(const char *symbol, size_t length)
{
	while (length > 0 && symbol[length - 1] != '.')
		length--;
	return length;
}

size_t demangle_base_length(const char *symbol)
{
	size_t length = strcspn(symbol, "@");

	if (length == 0)
		return strlen(symbol);
	for (;;) {
		size_t end = length, word = last_word(symbol, end);
		bool numbered = word > 1 && is_number(symbol + word, end - word);

		if (numbered) {
			end = word - 1;
			word = last_word(symbol, end);
		}
		if (word <= 1 || !is_clone_suffix(symbol + word, end - word, numbered))
			return length;
		length = word - 1;
	}
}

static bool demangle_base(const char *symbol, char *out)
{
	struct output output = {.text = out};

	if (symbol[1] == 'R' && !is_plausible_rust(symbol))
		return false;
	if (setjmp(output.full))
		return true;
	if (rust_demangle_callback(symbol, DMGL_ANSI, collect, &output) && output.length > 0)
		return true;
	output.length = 0;
	/* Without the flag, symbols of more than 1,024 characters are refused. */
	return cplus_demangle_v3_callback(symbol, DMGL_ANSI | DMGL_NO_RECURSE_LIMIT, collect, &output) &&
	    output.length > 0;
}

bool demangle_name(const char *symbol, char out[DEMANGLE_NAME_MAX])
{
	size_t length = demangle_base_length(symbol);
	char base[DEMANGLE_SYMBOL_MAX];

	if (length > 0 && length < sizeof(base)) {
		memcpy(base, symbol, length);
		base[length] = '\0';
		if (base[1] == 'R') /* a tool's suffix: neither character is in a Rust symbol */
			base[strcspn(base, ".$")] = '\0';
		if (demangle_is_mangled(base) && demangle_base(base, out))
			return true;
	}
	if (length >= DEMANGLE_NAME_MAX)
		length = DEMANGLE_NAME_MAX - 1;
	memcpy(out, symbol, length);
	out[length] = '\0';
	return symbol[length] != '\0';
}
