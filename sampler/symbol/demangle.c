/* SPDX-License-Identifier: Apache-2.0 */
#include "sampler/symbol/demangle.h"

#include <ctype.h>
#include <setjmp.h>
#include <stdlib.h>
#include <string.h>

#include <libiberty/demangle.h>

#include "sampler/symbol/rustsym.h"

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

	if (symbol[1] == 'R' && !rustsym_is_plausible(symbol))
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
