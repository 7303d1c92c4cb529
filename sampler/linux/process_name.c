/* SPDX-License-Identifier: Apache-2.0 */
#include "sampler/linux/process_name.h"

#include "pprof/table/array.h"
#include "pprof/text/utf8.h"
#include "sampler/linux/proc.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

enum {
	WORDS_MOST = 128,
	OPERAND_LONGEST = 48, /* a longer word may be a key */
	SCRIPT_LONGEST = 72,
	TITLE_WORDS_MOST = 5,
};

struct word {
	const char *text; /* not terminated */
	size_t length;
};

struct words {
	struct word word[WORDS_MOST];
	size_t count;
	bool title; /* only the first word is not empty, and more than its NUL follows */
};

/* ---- words */

static bool is(struct word word, const char *text)
{
	return word.length == strlen(text) && memcmp(word.text, text, word.length) == 0;
}

/* Is the word in `list`, whose items are separated by blanks? */
static bool is_in(struct word word, const char *list)
{
	while (list && *list) {
		const size_t length = strcspn(list, " ");

		if (word.length == length && memcmp(word.text, list, length) == 0)
			return true;
		list += length + (list[length] == ' ');
	}
	return false;
}

static bool has(struct word word, const char *part)
{
	return memmem(word.text, word.length, part, strlen(part)) != NULL;
}

static bool is_option(struct word word)
{
	return word.length && word.text[0] == '-';
}

static struct words split(const char *line, size_t bytes)
{
	struct words words = {.count = 0};
	size_t filled = 0;

	for (size_t at = 0; at < bytes && words.count < WORDS_MOST;) {
		const size_t length = strnlen(line + at, bytes - at);

		words.word[words.count++] = (struct word){line + at, length};
		filled += length > 0;
		at += length + 1;
	}
	/* A title overwrites the arguments, and zeroes the rest of them. */
	words.title = words.count > 1 && filled == 1 && words.word[0].length;
	return words;
}

/* The part behind the last '/'. */
static struct word last_part(struct word path)
{
	const char *slash = memrchr(path.text, '/', path.length);

	if (!slash)
		return path;
	return (struct word){slash + 1, path.length - (size_t)(slash + 1 - path.text)};
}

/* ---- pieces */

static void append(char name[PROCESS_NAME_BYTES], const char *before, struct word word)
{
	const size_t length = strlen(name), used = length + strlen(before);
	size_t most = word.length;

	if (used >= PROCESS_NAME_BYTES - 1)
		return;
	if (most > PROCESS_NAME_BYTES - 1 - used)
		most = PROCESS_NAME_BYTES - 1 - used;
	while (most && most < word.length && ((unsigned char)word.text[most] & 0xc0) == 0x80)
		most--; /* inside a character */
	snprintf(name + length, PROCESS_NAME_BYTES - length, "%s%.*s", before, (int)most, word.text);
}

static bool is_letter(char letter)
{
	return (letter >= 'a' && letter <= 'z') || (letter >= 'A' && letter <= 'Z') || letter == '_';
}

/* Leaves out what may be a secret (an assignment, a URL, an account), and numbers, which tell nothing. */
static bool may_be_shown(struct word word)
{
	bool letters = false;

	for (size_t i = 0; i < word.length && !letters; i++)
		letters = is_letter(word.text[i]) || (unsigned char)word.text[i] >= 0x80;
	return letters && !is_option(word) && !memchr(word.text, '=', word.length) &&
	    !memchr(word.text, '@', word.length) && !has(word, "://");
}

static void append_operand(char name[PROCESS_NAME_BYTES], struct word word)
{
	const struct word part = last_part(word);

	if (may_be_shown(word) && part.length && part.length <= OPERAND_LONGEST)
		append(name, " ", part);
}

/* The file with its folder, because many files are called main.py or server.js. Folders of programs tell
 * nothing. */
static struct word script_of(struct word path)
{
	const struct word file = last_part(path);
	struct word above = {path.text, path.length - file.length};

	while (above.length && above.text[above.length - 1] == '/')
		above.length--;
	above = last_part(above);
	if (!file.length || !above.length || is_in(above, "bin sbin libexec . ..") ||
	    above.length + file.length > SCRIPT_LONGEST)
		return file;
	return (struct word){above.text, (size_t)(file.text + file.length - above.text)};
}

/* ---- interpreters */

/* Options: single letters, which may be joined (-uc), or words (-jar, --eval). The lists tell options by
 * their value: code; a module to execute; the script; or anything else. The value is in the next word or, for
 * `attached`, always in the same word. */
struct interpreter {
	const char *names; /* a version may follow the name */
	const char *code, *module, *file, *value, *attached;
	bool words;
};

static const struct interpreter interpreters[] = {
    {.names = "python pypy", .code = "c", .module = "m", .value = "WXQ"},
    {.names = "ruby", .code = "e", .value = "ICEK", .attached = "FTWx0il"},
    {.names = "perl", .code = "eE", .value = "I", .attached = "MmCDFTVilx0"},
    {.names = "php", .code = "rRB", .file = "fF", .value = "cdzt"},
    {.names = "sh bash dash ash zsh ksh", .code = "c", .value = "oO"},
    {.names = "lua luajit", .code = "e", .value = "l"},
    {.names = "node nodejs",
        .words = true,
        .code = "-e --eval -p --print -pe",
        .value = "-r --require --import --loader --experimental-loader -C --conditions --title"},
    {.names = "java",
        .words = true,
        .module = "-m --module",
        .file = "-jar",
        .value = "-cp -classpath --class-path -p --module-path --upgrade-module-path --add-modules "
                 "--add-opens --add-exports --add-reads --enable-native-access"},
};

static const struct interpreter *interpreter_of(const char *program)
{
	const struct word name = {program, strcspn(program, "-0123456789.")};

	if (program[name.length + strspn(program + name.length, "-0123456789.")])
		return NULL;
	for (size_t i = 0; i < ARRAY_COUNT(interpreters); i++)
		if (is_in(name, interpreters[i].names))
			return &interpreters[i];
	return NULL;
}

enum meaning { NOTHING, CODE, MODULE, FILE_NEXT, VALUE_NEXT };

/* An option of single letters: *rest becomes the text behind the letter that has a value. */
static enum meaning meaning_of_letters(
    const struct interpreter *interpreter, struct word word, struct word *rest)
{
	for (size_t i = 1; i < word.length && word.text[1] != '-'; i++) {
		const char letter[] = {word.text[i], '\0'};

		*rest = (struct word){word.text + i + 1, word.length - i - 1};
		if (interpreter->code && strpbrk(interpreter->code, letter))
			return CODE;
		if (interpreter->module && strpbrk(interpreter->module, letter))
			return MODULE;
		if (interpreter->file && strpbrk(interpreter->file, letter))
			return FILE_NEXT;
		if (interpreter->value && strpbrk(interpreter->value, letter))
			return rest->length ? NOTHING : VALUE_NEXT;
		if (interpreter->attached && strpbrk(interpreter->attached, letter))
			return NOTHING;
	}
	*rest = (struct word){word.text, 0};
	return NOTHING;
}

static enum meaning meaning_of(const struct interpreter *interpreter, struct word word, struct word *rest)
{
	*rest = (struct word){word.text, 0};
	if (!interpreter->words)
		return meaning_of_letters(interpreter, word, rest);
	if (is_in(word, interpreter->code))
		return CODE;
	if (is_in(word, interpreter->module))
		return MODULE;
	if (is_in(word, interpreter->file))
		return FILE_NEXT;
	return is_in(word, interpreter->value) ? VALUE_NEXT : NOTHING;
}

/* "app:app", "shop.wsgi:make_app()": the application that a Python server serves. */
static bool is_application(struct word word)
{
	const char *colon = memchr(word.text, ':', word.length);

	if (!colon || !may_be_shown(word) || !is_letter(word.text[0]) || has(word, "/"))
		return false;
	const size_t after = word.length - (size_t)(colon - word.text) - 1;
	return after && is_letter(colon[1]) && !memchr(colon + 1, ':', after) &&
	    word.length <= OPERAND_LONGEST;
}

/* What tells the processes of one script apart: the word behind the script, or a known word of some scripts.
 * The value of an option is neither. */
static void append_operand_of(char name[PROCESS_NAME_BYTES], const struct words *words, size_t script)
{
	static const char servers[] = "gunicorn uvicorn hypercorn daphne granian";
	const struct word file = last_part(words->word[script]);
	const size_t next = script + 1;

	if (next < words->count && !is_option(words->word[next])) {
		append_operand(name, words->word[next]);
		return;
	}
	for (size_t i = next; i < words->count; i++) {
		const struct word word = words->word[i], before = words->word[i - 1];
		const bool is_value = is_option(before) &&
		    !is_in(before, "--reload --preload --factory --daemon -D") && !has(before, "=");

		if ((is_in(file, servers) && is_application(word) && !is_value) ||
		    (is(file, "celery") && is_in(word, "worker beat flower"))) {
			append(name, " ", word);
			return;
		}
	}
}

static void append_script(char name[PROCESS_NAME_BYTES], struct word path)
{
	const struct word script = script_of(path);

	if (script.length <= SCRIPT_LONGEST)
		append(name, " ", script);
}

static void append_module(
    char name[PROCESS_NAME_BYTES], const struct words *words, size_t at, struct word rest)
{
	const size_t next = rest.length ? at : at + 1;
	const struct word module = rest.length ? rest : next < words->count ? words->word[next] : rest;

	if (!module.length || module.length > SCRIPT_LONGEST)
		return;
	append(name, " -m ", module);
	if (!rest.length)
		append_operand_of(name, words, next);
}

static void append_interpreted(
    char name[PROCESS_NAME_BYTES], const struct interpreter *interpreter, const struct words *words)
{
	for (size_t i = 1; i < words->count; i++) {
		const struct word word = words->word[i];
		struct word rest;

		if (!is_option(word) && !(word.length && word.text[0] == '+')) {
			append_script(name, word);
			append_operand_of(name, words, i);
			return;
		}
		switch (is(word, "--") ? NOTHING : meaning_of(interpreter, word, &rest)) {
		case CODE:
			return;
		case MODULE:
			append_module(name, words, i, rest);
			return;
		case FILE_NEXT:
			if (i + 1 < words->count) {
				append_script(name, words->word[i + 1]);
				append_operand_of(name, words, i + 1);
			}
			return;
		case VALUE_NEXT:
			i++;
			break;
		case NOTHING:
			break;
		}
	}
}

/* ---- titles */

/* "nginx: master process /usr/sbin/nginx -g ...": the command line follows the title. */
static size_t title_length(struct word title)
{
	size_t length = 0;
	unsigned int words = 0;

	while (length < title.length && words < TITLE_WORDS_MOST) {
		size_t blanks = 0, bytes = 0;

		while (length + blanks < title.length && title.text[length + blanks] == ' ')
			blanks++;
		while (length + blanks + bytes < title.length && title.text[length + blanks + bytes] != ' ')
			bytes++;
		const struct word word = {title.text + length + blanks, bytes};
		if (!bytes ||
		    (words &&
		        (is_option(word) || word.text[0] == '/' || memchr(word.text, '=', bytes) ||
		            has(word, "://"))))
			break;
		length += blanks + bytes;
		words++;
	}
	return length;
}

/* A title is a word with a colon and more text in the same string ("nginx: worker process"). Or it is a
 * string other than the program's own name, with only zero bytes behind it. */
static bool is_title(const struct words *words, const char *program)
{
	const struct word first = words->word[0];
	const char *blank = memchr(first.text, ' ', first.length);

	if (!first.length || is_option(first))
		return false;
	if (blank && first.text[0] != '/' && blank > first.text && blank[-1] == ':')
		return true;
	if (first.text[0] == '/')
		return blank && words->title;
	return (words->title || (blank && words->count == 1)) && !is(first, program) &&
	    (blank || !has(first, "/"));
}

static void append_title(char name[PROCESS_NAME_BYTES], const char *program, struct word title)
{
	title.length = title_length(title);
	const char *end = memchr(title.text, ' ', title.length);
	struct word first = {title.text, end ? (size_t)(end - title.text) : title.length};
	const struct word own = last_part(first); /* "/usr/bin/redis-server *:6379" */
	title.length -= (size_t)(own.text - title.text);
	title.text = own.text;
	first = own;
	if (first.length && first.text[first.length - 1] == ':')
		first.length--;
	/* The title begins with the program's name, perhaps without the version; if it does not, the name is
	 * put in front. */
	if (first.length && strncmp(program, first.text, first.length) == 0)
		name[0] = '\0';
	append(name, name[0] ? " " : "", title);
}

/* ---- the whole */

void process_name_make(
    char name[PROCESS_NAME_BYTES], const char *program, const char *line, size_t line_bytes)
{
	const struct words words = split(line, line_bytes);
	const struct interpreter *interpreter = interpreter_of(program);

	name[0] = '\0';
	append(name, "", (struct word){program, strlen(program)});
	if (words.count && is_title(&words, program))
		append_title(name, program, words.word[0]);
	else if (interpreter)
		append_interpreted(name, interpreter, &words);
	else if (words.count > 1)
		append_operand(name, words.word[1]);
	utf8_disarm(name, strlen(name));
	for (size_t length = strlen(name); length && name[length - 1] == ' ';)
		name[--length] = '\0';
}

void process_name_read(char name[PROCESS_NAME_BYTES], pid_t pid, const char *program)
{
	char line[PROCESS_NAME_LINE_BYTES];
	const ssize_t length = proc_read(pid, "cmdline", line, sizeof(line));

	process_name_make(name, program, line, length > 0 ? (size_t)length : 0);
}
