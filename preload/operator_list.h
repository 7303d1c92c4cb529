/* SPDX-License-Identifier: Apache-2.0 */
/* C++'s replaceable operators new and delete, in all their forms (next_symbol_operators.c). */
#ifndef PRELOAD_OPERATOR_LIST_H
#define PRELOAD_OPERATOR_LIST_H

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

/* Looks up the next definitions. Called by next_symbol_resolve once real.malloc is known. */
void next_symbol_resolve_operators(void);

#endif
