/* SPDX-License-Identifier: Apache-2.0 */
#include "sampler/books/unseen.h"

#include "pprof/text/amount.h"
#include "pprof/text/utf8.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

/* Less is not worth a line. */
static const double memory_least = 2 << 20, memory_share = 0.1, others_least = 4 << 20, names_share = 0.1;

/* ---- the list */

void unseen_add(
    struct unseen *unseen, enum unseen_reason reason, double bytes, const char *what, const char *how)
{
	size_t at = unseen->count;

	if (at == UNSEEN_MAX)
		return;
	for (; at > 0 && unseen->texts[at - 1].bytes < bytes; at--)
		unseen->texts[at] = unseen->texts[at - 1];
	struct unseen_text *one = &unseen->texts[at];
	one->reason = reason;
	one->bytes = bytes;
	snprintf(one->what, sizeof(one->what), "%s", what);
	snprintf(one->how, sizeof(one->how), "%s", how);
	utf8_disarm(one->what, strlen(one->what));
	utf8_disarm(one->how, strlen(one->how));
	unseen->count++;
}

__attribute__((format(printf, 5, 6))) static void add(
    struct unseen *unseen, enum unseen_reason reason, double bytes, const char *how, const char *format, ...)
{
	char what[UNSEEN_WHAT_BYTES];
	va_list arguments;

	va_start(arguments, format);
	vsnprintf(what, sizeof(what), format, arguments);
	va_end(arguments);
	unseen_add(unseen, reason, bytes, what, how);
}

const char *unseen_line(const struct unseen_text *one, char text[UNSEEN_LINE_BYTES])
{
	snprintf(text, UNSEEN_LINE_BYTES, "not seen: %s%s%s", one->what, one->how[0] ? "; " : "", one->how);
	return text;
}

/* ---- memory */

#define BY_MMAP "--mmap shows who makes it grow"

static void add_allocator(struct unseen *unseen, const struct unseen_facts *facts)
{
	static const char shared[] = "linking it as a shared library shows each block";
	char how[UNSEEN_HOW_BYTES], amount[AMOUNT_BYTES];

	snprintf(how, sizeof(how), "%s%s", facts->with_mmap ? "" : BY_MMAP ", ", shared);
	if (facts->own_malloc)
		add(unseen, UNSEEN_ALLOCATOR, facts->others, how,
		    "the program has a malloc of its own, which comes before heaptap's");
	else if (facts->with_mmap)
		add(unseen, UNSEEN_ALLOCATOR, facts->others, how,
		    "blocks of the allocator inside %s (%s), only what it maps", facts->allocator_file,
		    facts->allocator);
	else if (facts->measured)
		add(unseen, UNSEEN_ALLOCATOR, facts->others, how,
		    "%s are of the allocator inside %s (%s), or other mmap",
		    amount_bytes(facts->others, amount), facts->allocator_file, facts->allocator);
	else
		add(unseen, UNSEEN_ALLOCATOR, 0, how, "what is allocated by the allocator inside %s (%s)",
		    facts->allocator_file, facts->allocator);
}

/* Whether the interpreter maps memory for itself. */
static bool has_pool(const struct unseen_facts *facts)
{
	return runtime_memory(facts->runtime.kind) && !facts->runtime_by_malloc;
}

static void add_runtime(struct unseen *unseen, const struct unseen_facts *facts)
{
	const enum runtime_kind kind = facts->runtime.kind;
	const char *memory = runtime_memory(kind),
	           *how = facts->with_mmap ? runtime_memory_remedy_beside_mmap(kind, facts->asks)
	                                   : runtime_memory_remedy(kind, facts->asks);
	char amount[AMOUNT_BYTES];

	if (!how)
		return;
	if (!facts->measured)
		add(unseen, UNSEEN_POOL, 0, how, "%s", memory);
	else if (facts->others >= memory_least && facts->others >= facts->resident * memory_share)
		add(unseen, UNSEEN_POOL, facts->others, how, "%s are %s or other mmap",
		    amount_bytes(facts->others, amount), memory);
}

/* For a program of which nothing else is known. */
static void add_others(struct unseen *unseen, const struct unseen_facts *facts)
{
	char amount[AMOUNT_BYTES];

	if (facts->with_mmap || !facts->measured || facts->others < others_least ||
	    facts->others <= facts->heap || facts->others < facts->resident / 4)
		return;
	add(unseen, UNSEEN_OTHERS, facts->others, BY_MMAP,
	    "%s are memory in which no sampled block lies: pools, mmap%s",
	    amount_bytes(facts->others, amount),
	    facts->stripped ? ", or an allocator inside, which may be hidden: the program is stripped" : "");
}

/* Interpreters, which are stripped everywhere, are known. */
bool unseen_may_hide(const struct unseen_facts *facts, double bound_bytes)
{
	const bool hides = facts->runtime.kind
	    ? has_pool(facts) && runtime_avoids_malloc(facts->runtime.kind) && !facts->with_mmap
	    : facts->stripped;

	return facts->own_malloc || facts->calls[0] || facts->allocator[0] || facts->second_libc ||
	    (hides && (!facts->measured || facts->others >= bound_bytes));
}

/* ---- names */

static void add_names(struct unseen *unseen, const struct unseen_facts *facts)
{
	const char *language = runtime_language(facts->runtime.kind),
	           *how = runtime_names_remedy(&facts->runtime, facts->asks);

	if (!language)
		return;
	if (facts->names_unknown)
		add(unseen, UNSEEN_NAMES, 0, how, "the names of %s functions", language);
	else if (facts->nameless > 0 && facts->nameless >= facts->named * names_share)
		add(unseen, UNSEEN_NAMES, facts->heap * facts->nameless / facts->named, how,
		    "the %s functions that allocated %.0f %% of the bytes", language,
		    100 * facts->nameless / facts->named);
}

void unseen_add_stripped(
    struct unseen *unseen, const struct unseen_facts *facts, double nameless_bytes, double bytes)
{
	char how[UNSEEN_HOW_BYTES] = "build it with -g", beside[96] = "", by_id[96] = "";

	if (!facts->program[0] || nameless_bytes <= 0 || nameless_bytes < bytes * names_share)
		return;
	if (facts->debug_link[0])
		snprintf(beside, sizeof(beside), "%s", facts->debug_link);
	if (facts->build_id[0])
		snprintf(by_id, sizeof(by_id), "/usr/lib/debug/.build-id/%.2s/%s.debug", facts->build_id,
		    facts->build_id + 2);
	if (beside[0] || by_id[0])
		snprintf(how, sizeof(how), "its debug file is not there: looked for %s%s%s", beside,
		    beside[0] && by_id[0] ? ", " : "", by_id);
	add(unseen, UNSEEN_STRIPPED, nameless_bytes, how,
	    "the functions of %.0f %% of the bytes, in %s, which is stripped", 100 * nameless_bytes / bytes,
	    facts->program);
}

void unseen_describe(struct unseen *unseen, const struct unseen_facts *facts)
{
	unseen->count = 0;
	const bool inside = facts->own_malloc || facts->allocator[0];
	if (inside)
		add_allocator(unseen, facts);
	if (has_pool(facts))
		add_runtime(unseen, facts);
	else if (!inside)
		add_others(unseen, facts);
	if (facts->calls[0])
		add(unseen, UNSEEN_CALLS, 0, "heaptap record COMMAND sees it",
		    "what is allocated in %s: it calls malloc in a way that attaching cannot reach",
		    facts->calls);
	if (facts->second_libc)
		add(unseen, UNSEEN_SECOND_LIBC, 0, "dlopen in place of dlmopen shows it",
		    "what is allocated by plug-ins with a libc of their own, which dlmopen gives them");
	if (facts->runtime.kind)
		add_names(unseen, facts);
}
