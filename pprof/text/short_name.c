/* SPDX-License-Identifier: Apache-2.0 */
#include "pprof/text/short_name.h"

#include <ctype.h>
#include <stdbool.h>
#include <string.h>

#include "pprof/text/text.h"
#include "pprof/text/utf8.h"

enum { DEPTH_MOST = 64 };

/* A name that is being shortened; `at` is the next byte of it. */
struct shortening {
	const char *name;
	size_t length, at;
	char *text;
	size_t written;
	char open[DEPTH_MOST]; /* brackets that were kept and are still open */
	size_t depth;
	size_t base;     /* where the name begins in text, after its return type */
	bool based;      /* the first parameters have been met, and the return type is known */
	bool conversion; /* after "operator ": spaces belong to the name */
	bool whole;      /* what was written last is an operator: '<' or '(' after it is not part of it */
};

static bool is_word(char c)
{
	return isalnum((unsigned char)c) || c == '_' || c == '$' || (unsigned char)c >= 0x80;
}

static bool starts(const char *name, size_t length, size_t at, const char *text)
{
	size_t bytes = strlen(text);

	return length - at >= bytes && memcmp(name + at, text, bytes) == 0;
}

/* The place after the operator's symbol if an operator's name begins at `at`, else `at`. The demangler writes
 * a space between "operator<" and template arguments, so the longest symbol is the right one. */
static size_t operator_end(const char *name, size_t length, size_t at)
{
	static const char *const symbols[] = {"<=>", "<<=", ">>=", "->*", "()", "[]", "\"\"", "->", "<<",
	    ">>", "<=", ">=", "==", "!=", "&&", "||", "++", "--",
	    "+=", "-=", "*=", "/=", "%=", "^=", "&=", "|=", "<", ">", "=", "+", "-", "*", "/", "%", "^", "&",
	    "|", "~", "!", ","};
	size_t word = at + strlen("operator");

	if ((at && is_word(name[at - 1])) || !starts(name, length, at, "operator"))
		return at;
	for (size_t i = 0; i < sizeof(symbols) / sizeof(*symbols); i++)
		if (starts(name, length, word, symbols[i]))
			return word + strlen(symbols[i]);
	return at;
}

static char closing(char open)
{
	return open == '<' ? '>' : open == '(' ? ')' : open == '[' ? ']' : '}';
}

/* The place of the bracket that closes the one at `open`; length if there is none. '<' and '>' in
 * parentheses may be comparisons: other brackets close over them. */
static size_t close_of(const char *name, size_t length, size_t open)
{
	char stack[DEPTH_MOST];
	size_t depth = 0;

	for (size_t at = open; at < length; at++) {
		size_t end = operator_end(name, length, at);
		char c = name[at];

		if (end > at) {
			at = end - 1;
			continue;
		}
		if (c == '-' && starts(name, length, at, "->")) {
			at++;
		} else if (strchr("<([{", c) && c) {
			if (depth == DEPTH_MOST)
				return length;
			stack[depth++] = closing(c);
		} else if (c == '>') {
			if (stack[depth - 1] == '>')
				depth--;
		} else if (strchr(")]}", c) && c) {
			while (depth && stack[depth - 1] == '>' && depth > 1)
				depth--;
			if (stack[depth - 1] != c)
				return length;
			depth--;
		}
		if (!depth)
			return at;
	}
	return length;
}

static void keep(struct shortening *s, size_t bytes)
{
	memcpy(s->text + s->written, s->name + s->at, bytes);
	s->written += bytes;
	s->at += bytes;
	s->whole = false;
}

static bool ends_word(const struct shortening *s)
{
	return s->whole ||
	    (s->written && (is_word(s->text[s->written - 1]) || strchr("]})", s->text[s->written - 1])));
}

/* Is what follows the '>' at `end` the end of a component, as after "::<u8>"? */
static bool ends_component(const struct shortening *s, size_t end)
{
	size_t next = end + 1;

	return next == s->length || starts(s->name, s->length, next, "::") || strchr("(>, )", s->name[next]);
}

/* Template arguments: after a name, or as Rust writes them, after "::". */
static bool is_arguments(const struct shortening *s, size_t end)
{
	static const char *const names[] = {"<impl ", "<lambda", "<unnamed", "<anonymous", "<dyn "};

	if (ends_word(s))
		return true;
	if (s->written < 3 || memcmp(s->text + s->written - 2, "::", 2) != 0 || !ends_component(s, end))
		return false;
	for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++)
		if (starts(s->name, s->length, s->at, names[i]))
			return false;
	return true;
}

static bool open_bracket(struct shortening *s)
{
	if (s->depth == DEPTH_MOST)
		return false;
	s->open[s->depth++] = closing(s->name[s->at]);
	keep(s, 1);
	return true;
}

/* Java's constructors have such names: "java.util.zip.Inflater.<init>(boolean)". Returns the bytes. */
static size_t constructor_bytes(const struct shortening *s)
{
	static const char *const names[] = {"<init>", "<clinit>"};

	for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++)
		if (s->written && s->text[s->written - 1] == '.' &&
		    starts(s->name, s->length, s->at, names[i]))
			return strlen(names[i]);
	return 0;
}

static bool take_angle(struct shortening *s)
{
	size_t end = close_of(s->name, s->length, s->at), constructor = constructor_bytes(s);

	if (constructor) {
		keep(s, constructor);
		s->whole = true;
		return true;
	}
	if (end == s->length)
		return false;
	if (!is_arguments(s, end))
		return open_bracket(s);
	if (!ends_word(s))
		s->written -= 2;
	s->at = end + 1;
	return true;
}

/* What may follow parameters: returns the place after it. */
static size_t qualifiers_end(const char *name, size_t length, size_t at)
{
	static const char *const words[] = {" const", " volatile", " restrict", " noexcept", " &&", " &"};
	bool found = true;

	while (found) {
		found = false;
		for (size_t i = 0; i < sizeof(words) / sizeof(*words); i++) {
			if (!starts(name, length, at, words[i]))
				continue;
			at += strlen(words[i]);
			found = true;
		}
		if (starts(name, length, at, " [clone ") && close_of(name, length, at + 1) < length) {
			at = close_of(name, length, at + 1) + 1;
			found = true;
		}
	}
	return at;
}

/* Parameters are dropped where they end the name, or a function that something is local to. */
static bool take_parenthesis(struct shortening *s)
{
	size_t end, next;

	if (s->depth || !ends_word(s))
		return open_bracket(s);
	end = close_of(s->name, s->length, s->at);
	if (end == s->length)
		return false;
	next = qualifiers_end(s->name, s->length, end + 1);
	if (next != s->length && !starts(s->name, s->length, next, "::"))
		return open_bracket(s);
	if (!s->based && s->base) {
		memmove(s->text, s->text + s->base, s->written - s->base);
		s->written -= s->base;
	}
	s->based = true;
	s->at = next;
	return true;
}

/* "Svc$$Lambda$14/0x0000000800066840.run": what is behind the slash is an address of that run. */
static bool take_slash(struct shortening *s)
{
	size_t end = s->at;

	while (end < s->length && s->name[end] && strchr("/0123456789abcdefx", s->name[end]))
		end++;
	if (!s->depth && starts(s->name, s->length, s->at, "/0x") && end < s->length && s->name[end] == '.' &&
	    memchr(s->text, '$', s->written)) {
		s->at = end;
		return true;
	}
	if (!s->depth)
		return false;
	keep(s, 1);
	return true;
}

static void take_operator(struct shortening *s, size_t end)
{
	keep(s, end - s->at);
	s->whole = true;
	/* "operator<< <char>" */
	if (starts(s->name, s->length, s->at, " <"))
		s->at++;
}

static void take_space(struct shortening *s)
{
	keep(s, 1);
	if (s->depth || s->conversion || s->based)
		return;
	if (s->written >= 9 && memcmp(s->text + s->written - 9, "operator ", 9) == 0)
		s->conversion = true;
	else
		s->base = s->written;
}

/* Takes what is next. False: this is not a name that we know how to shorten. */
static bool take(struct shortening *s)
{
	size_t end = operator_end(s->name, s->length, s->at);
	char c = s->name[s->at];

	if (end > s->at) {
		take_operator(s, end);
		return true;
	}
	if (starts(s->name, s->length, s->at, "->") || starts(s->name, s->length, s->at, "::")) {
		keep(s, 2);
		return true;
	}
	switch (c) {
	case '<':
		return take_angle(s);
	case '(':
		return take_parenthesis(s);
	case '[':
	case '{':
		return open_bracket(s);
	case '>':
	case ')':
	case ']':
	case '}':
		if (!s->depth || s->open[s->depth - 1] != c)
			return false;
		s->depth--;
		keep(s, 1);
		return true;
	case '/': /* Go's "net/http.(*conn).serve" */
		return take_slash(s);
	case ':': /* "JS:^load /srv/load.js:3:1", "py::<module>:/srv/load.py" */
		if (!s->depth)
			return false;
		keep(s, 1);
		return true;
	case ' ':
		take_space(s);
		return true;
	default:
		keep(s, 1);
		return true;
	}
}

/* V8 has a name for each way in which it runs a function: "JS:*load FILE" is optimized, "JS:~load FILE" is
 * interpreted. Returns the bytes before the function's own name; of one without a name, before its place. */
static size_t tier_bytes(const char *name, size_t length)
{
	static const char *const tags[] = {"JS:", "LazyCompile:", "Function:", "Eval:", "Script:"};

	for (size_t i = 0; i < sizeof(tags) / sizeof(*tags); i++) {
		size_t at = strlen(tags[i]);

		if (!starts(name, length, 0, tags[i]) || at >= length || !name[at] ||
		    !strchr("*^~+", name[at]))
			continue;
		at += starts(name, length, at + 1, "'") ? 2 : 1;
		at += starts(name, length, at, " ");
		return at < length ? at : 0;
	}
	return 0;
}

size_t short_name(const char *name, size_t length, char *text)
{
	struct shortening s = {.name = name, .length = length, .text = text};
	size_t tier = tier_bytes(name, length);
	bool known = length <= SHORT_NAME_MOST_BYTES && !tier;

	while (known && s.at < length)
		known = take(&s);
	if (!known || s.depth || !s.written) {
		memcpy(text, name + tier, length - tier);
		s.written = length - tier;
	}
	text[s.written] = '\0';
	return s.written;
}

/* ---- fitted to columns */

/* In valid UTF-8 every byte except a continuation byte begins a character. */
static bool is_start(char byte)
{
	return ((unsigned char)byte & 0xc0) != 0x80;
}

static size_t columns_in(const char *text, size_t bytes)
{
	size_t columns = 0;

	for (size_t i = 0; i < bytes; i++)
		columns += is_start(text[i]);
	return columns;
}

static size_t columns_of(const char *text)
{
	return columns_in(text, strlen(text));
}

/* Bytes of the first characters, or from the last ones on. */
static size_t head_bytes(const char *text, size_t columns)
{
	size_t at = 0;

	while (text[at] && (columns || !is_start(text[at]))) {
		columns -= is_start(text[at]);
		at++;
	}
	return at;
}

static const char *tail_of(const char *text, size_t columns)
{
	return text + head_bytes(text, columns_of(text) - columns);
}

/* Where the file name begins, after ':' or ' '. NULL if the name has none. */
static const char *file_of(const char *name)
{
	const char *slash = strchr(name, '/'), *frozen = strstr(name, ":<"), *from = slash;

	if (frozen && (!slash || frozen < slash))
		return frozen > name && frozen[-1] != ':' ? frozen + 1 : NULL;
	if (!slash || !slash[1] || strstr(name, "operator/"))
		return NULL;
	while (from > name && from[-1] != ':' && from[-1] != ' ')
		from--;
	return from > name ? from : NULL;
}

struct fitting {
	const char *name, *dots;
	size_t columns, dots_columns;
	char *text;
	size_t text_bytes;
};

static void put(const struct fitting *fitting, const char *head, size_t bytes, const char *tail)
{
	text_append(fitting->text, fitting->text_bytes, "%.*s%s%s", (int)bytes, head, fitting->dots, tail);
}

/* "py::f:" and as many folders as fit, or as much of the file's name. */
static bool fit_file(const struct fitting *fitting)
{
	enum { TELLING_COLUMNS = 4 }; /* of the file's name, at least */
	const char *file = file_of(fitting->name);
	const size_t bytes = file ? (size_t)(file - fitting->name) : 0;
	const size_t taken = columns_in(fitting->name, bytes) + fitting->dots_columns;

	if (!file || taken + TELLING_COLUMNS > fitting->columns)
		return false;
	const size_t room = fitting->columns - taken;
	const char *tail = file;

	while (tail && columns_of(tail) > room)
		tail = strchr(tail + 1, '/');
	put(fitting, fitting->name, bytes, tail ? tail : tail_of(file, room));
	return true;
}

static bool fit_scopes(const struct fitting *fitting)
{
	const size_t room = fitting->columns - fitting->dots_columns;

	for (const char *at = fitting->name; (at = strstr(at, "::"));) {
		at += 2;
		if (columns_of(at) > room)
			continue;
		put(fitting, "", 0, at);
		return true;
	}
	return false;
}

static void fit_middle(const struct fitting *fitting)
{
	const size_t rest = fitting->columns - fitting->dots_columns, head = rest / 2;

	put(fitting, fitting->name, head_bytes(fitting->name, head), tail_of(fitting->name, rest - head));
}

void short_name_fit(const char *name, size_t columns, const char *dots, char *text, size_t text_bytes)
{
	const struct fitting fitting = {name, dots, columns, columns_of(dots), text, text_bytes};

	if (!text_bytes)
		return;
	text[0] = '\0';
	if (columns_of(name) <= columns)
		text_append(text, text_bytes, "%s", name);
	else if (columns < fitting.dots_columns)
		text_append(text, text_bytes, "%.*s", (int)head_bytes(name, columns), name);
	else if (!fit_file(&fitting) && !fit_scopes(&fitting))
		fit_middle(&fitting);
	text[utf8_valid_prefix(text, strlen(text))] = '\0'; /* it may be cut */
}
