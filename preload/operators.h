/* SPDX-License-Identifier: Apache-2.0 */
/*
 * C++'s replaceable operator new and delete, in all their forms.
 *
 * libstdc++'s and libc++'s call malloc, where they are seen. tcmalloc, jemalloc and mimalloc have operators
 * of their own that do not, so there, and only there, the operators are entry points too. Every form is
 * exported and jumps through a pointer:
 *
 *   the next definition is in the object that has the next malloc   -> counted here, then called
 *   it is anywhere else (libstdc++)                                 -> jumped to: one instruction, no frame
 *                                                                   of ours
 *   there is none (a C program)                                     -> see below
 *
 * A form that is not counted is also taken out of this library's symbol table once the program has been
 * loaded (lookup_hide). So what is bound later, lazily or by dlopen, is bound as if this library had no
 * operators: a C program that loads C++ plug-ins, each with a runtime of its own and out of sight of the
 * others, and unloads them, must find theirs, and no pointer to them may be kept here.
 *
 * Some forms of an allocator's call others, or its malloc, through the program's symbols, and so come here
 * again: what has been counted meanwhile is not counted a second time. Nothing here stands in the way of
 * std::bad_alloc: until the next definition has returned, nothing has been changed that would have to be put
 * right.
 *
 * Measured by bench/capture.sh at a load of 67, ns per new+delete, lowest and highest of 5 runs: libstdc++
 * 11.2..12.1 native, 13.6..14.1 attached (malloc's and free's share); tcmalloc 6.1 native, 10.5 to 10.6
 * attached.
 */
#ifndef PRELOAD_OPERATORS_H
#define PRELOAD_OPERATORS_H

#include <stdint.h>

/* Itanium C++ ABI names. All forms take up to three integer arguments, and are called with three. */
/* clang-format off */
#define OPERATORS_NEW(X) \
	X(_Znwm) \
	X(_Znam) \
	X(_ZnwmRKSt9nothrow_t) \
	X(_ZnamRKSt9nothrow_t) \
	X(_ZnwmSt11align_val_t) \
	X(_ZnamSt11align_val_t) \
	X(_ZnwmSt11align_val_tRKSt9nothrow_t) \
	X(_ZnamSt11align_val_tRKSt9nothrow_t)
#define OPERATORS_DELETE(X) \
	X(_ZdlPv) \
	X(_ZdaPv) \
	X(_ZdlPvm) \
	X(_ZdaPvm) \
	X(_ZdlPvRKSt9nothrow_t) \
	X(_ZdaPvRKSt9nothrow_t) \
	X(_ZdlPvSt11align_val_t) \
	X(_ZdaPvSt11align_val_t) \
	X(_ZdlPvmSt11align_val_t) \
	X(_ZdaPvmSt11align_val_t) \
	X(_ZdlPvSt11align_val_tRKSt9nothrow_t) \
	X(_ZdaPvSt11align_val_tRKSt9nothrow_t)

#define OPERATOR_NUMBER(name) OPERATOR##name,
enum operator { OPERATORS_NEW(OPERATOR_NUMBER) OPERATORS_DELETE(OPERATOR_NUMBER) OPERATORS };

typedef void *operator_function(uintptr_t first, uintptr_t second, uintptr_t third);

/* What the pointers are before anything has been resolved. */
#define OPERATOR_DECLARE(name) operator_function operator_first##name;
#define OPERATOR_FIRST(name)   [OPERATOR##name] = operator_first##name,
OPERATORS_NEW(OPERATOR_DECLARE)
OPERATORS_DELETE(OPERATOR_DECLARE)
#define OPERATORS_FIRST {OPERATORS_NEW(OPERATOR_FIRST) OPERATORS_DELETE(OPERATOR_FIRST)}
/* clang-format on */

/* Called by next_symbol_resolve, when real.malloc is known. */
void operators_resolve(void);

/* At the end of the constructor: takes what is not counted out of sight. */
void operators_settle(void);

#endif
