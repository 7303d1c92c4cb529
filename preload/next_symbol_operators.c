/* SPDX-License-Identifier: Apache-2.0 */
/*
 * C++'s replaceable operators new and delete, in all their forms.
 *
 * libstdc++'s and libc++'s call malloc, and are counted there. tcmalloc, jemalloc and mimalloc have their own
 * operators that do not call malloc, so with these, and only these, the operators are counted themselves.
 * Every form is exported and jumps through a pointer:
 *
 *   the next definition is in the object that has the next malloc   -> counted here, then called
 *   it is anywhere else (libstdc++)                                 -> jumped to: one instruction, no frame
 *                                                                   of ours
 *   there is none (a C program)                                     -> see below
 *
 * A form that is not counted is also removed from this library's symbol table once the program has been
 * loaded (lookup_hide). So references bound later, lazily or by dlopen, are bound as if this library had no
 * operators. A C program may load and unload C++ plug-ins, each with its own C++ runtime that is not visible
 * to the others: each must get the operators of its own runtime, and no pointer to them may be kept here.
 *
 * Some forms of an allocator's call others, or its malloc, through the program's symbols, and so come here
 * again: an allocation that has been counted meanwhile is not counted a second time. A std::bad_alloc may
 * pass through: until the next definition has returned, no state has been changed that would have to be
 * restored.
 */
#include "preload/next_symbol.h"

#include "preload/live.h"
#include "preload/lookup.h"
#include "preload/slow_path.h"

#define EXPORT      __attribute__((visibility("default")))
#define UNLIKELY(x) __builtin_expect(!!(x), 0)

#define OPERATOR_NAME(name) [OPERATOR##name] = #name,
static const char *const names[OPERATORS] = {OPERATORS_NEW(OPERATOR_NAME) OPERATORS_DELETE(OPERATOR_NAME)};

/* For calls before the program is loaded, and for forms of which no definition was found: looks it up at
 * every call, since it may be unloaded. A plug-in that calls it has a definition; the last resort is for weak
 * references. */
static void *call_found(enum operator form, uintptr_t first, uintptr_t second, uintptr_t third)
{
	struct lookup wish = {.name = names[form]};

	lookup_next(&wish, 1);
	if (wish.found)
		return ((operator_function *)(uintptr_t)wish.found)(first, second, third);
	if (form < OPERATOR_ZdlPv)
		return real.malloc(first);
	real.free((void *)first);
	return NULL;
}

static inline void *count_new(enum operator form, uintptr_t size, uintptr_t second, uintptr_t third)
{
	struct slow_path_mark mark = slow_path_mark();
	void *pointer = real.operator_next[form](size, second, third);

	if (pointer)
		slow_path_after(mark, pointer, size);
	return pointer;
}

static inline void *count_delete(enum operator form, uintptr_t pointer, uintptr_t second, uintptr_t third)
{
	if (UNLIKELY(live_maybe((void *)pointer)))
		slow_path_free((void *)pointer);
	return real.operator_next[form](pointer, second, third);
}

#define OPERATOR_DEFINE(name, count)                                                   \
	void *operator_first##name(uintptr_t first, uintptr_t second, uintptr_t third) \
	{                                                                              \
		next_symbol_resolve();                                                 \
		if (real.operator_go[OPERATOR##name] == operator_first##name)          \
			return call_found(OPERATOR##name, first, second, third);       \
		return real.operator_go[OPERATOR##name](first, second, third);         \
	}                                                                              \
	static void *counted##name(uintptr_t first, uintptr_t second, uintptr_t third) \
	{                                                                              \
		return count(OPERATOR##name, first, second, third);                    \
	}                                                                              \
	EXPORT operator_function name;                                                 \
	EXPORT void *name(uintptr_t first, uintptr_t second, uintptr_t third)          \
	{                                                                              \
		return real.operator_go[OPERATOR##name](first, second, third);         \
	}
#define OPERATOR_DEFINE_NEW(name)    OPERATOR_DEFINE(name, count_new)
#define OPERATOR_DEFINE_DELETE(name) OPERATOR_DEFINE(name, count_delete)
OPERATORS_NEW(OPERATOR_DEFINE_NEW)
OPERATORS_DELETE(OPERATOR_DEFINE_DELETE)

#define OPERATOR_COUNTED(name) [OPERATOR##name] = counted##name,
static operator_function *const counted[OPERATORS] = {
    OPERATORS_NEW(OPERATOR_COUNTED) OPERATORS_DELETE(OPERATOR_COUNTED)};

void next_symbol_resolve_operators(void)
{
	struct lookup wishes[OPERATORS] = {{.name = names[OPERATOR_Znwm]}};
	uintptr_t start, end;

	lookup_next(wishes, 1);
	if (!wishes[0].found)
		return; /* a C program: it has no other forms either */
	for (int i = 0; i < OPERATORS; i++)
		wishes[i].name = names[i];
	lookup_next(wishes, OPERATORS);
	lookup_extent((const void *)(uintptr_t)real.malloc, &start, &end);
	for (int i = 0; i < OPERATORS; i++) {
		uintptr_t found = (uintptr_t)wishes[i].found;

		if (!found)
			continue;
		real.operator_next[i] = (operator_function *)found;
		real.operator_go[i] = found >= start && found < end ? counted[i] : real.operator_next[i];
	}
}

bool next_symbol_counts(enum operator form)
{
	return real.operator_go[form] == counted[form];
}

void next_symbol_hide_operators(void)
{
	const char *hidden[OPERATORS];
	size_t count = 0;

	for (int i = 0; i < OPERATORS; i++)
		if (real.operator_go[i] != counted[i])
			hidden[count++] = names[i];
	lookup_hide(hidden, count);
}
