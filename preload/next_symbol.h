/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The next definition of each hooked function: glibc's, or that of any other allocator that the program uses
 * (never __libc_malloc, which would bypass it). Every pointer starts at a function that looks the real one up
 * first, so a hook may be called at any time, also before the library's constructor, and never tests for
 * NULL.
 *
 * C++'s operators new and delete are here too (next_symbol_operators.c): most calls of them are only passed
 * on.
 */
#ifndef PRELOAD_NEXT_SYMBOL_H
#define PRELOAD_NEXT_SYMBOL_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/resource.h>
#include <sys/types.h>

/* ---- C++'s replaceable operators new and delete, in all their forms (next_symbol_operators.c) */

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

/* ---- the table */

enum { REAL_ALIGNMENT = 4096 }; /* the table has its pages to itself: see next_symbol_protect */

struct real {
	_Alignas(REAL_ALIGNMENT) void *(*malloc)(size_t size);
	void (*free)(void *pointer);
	void *(*calloc)(size_t count, size_t size);
	void *(*realloc)(void *pointer, size_t size);
	void *(*reallocarray)(void *pointer, size_t count, size_t size);
	int (*posix_memalign)(void **out, size_t alignment, size_t size);
	void *(*aligned_alloc)(size_t alignment, size_t size);
	void *(*memalign)(size_t alignment, size_t size);
	void *(*valloc)(size_t size);
	void *(*pvalloc)(size_t size);
	void (*free_sized)(void *pointer, size_t size);
	void (*free_aligned_sized)(void *pointer, size_t alignment, size_t size);
	void *(*mmap)(void *address, size_t length, int protection, int flags, int fd, off_t offset);
	void *(*mmap64)(void *address, size_t length, int protection, int flags, int fd, off_t offset);
	void *(*mremap)(void *old, size_t old_length, size_t new_length, int flags, ...);
	int (*munmap)(void *address, size_t length);
	int (*mprotect)(void *address, size_t length, int protection);
	operator_function
	    *operator_go[OPERATORS]; /* jump targets of the exported operators: see next_symbol_operators.c */
	operator_function *operator_next[OPERATORS]; /* the next definitions; NULL: there is none (yet) */
	int (*pthread_create)(
	    pthread_t *thread, const pthread_attr_t *attr, void *(*start)(void *), void *argument);
	int (*dlclose)(void *handle);
	int (*prctl)(int option, ...);
	int (*setuid)(uid_t user);
	int (*setreuid)(uid_t user, uid_t effective);
	int (*setresuid)(uid_t user, uid_t effective, uid_t saved);
	int (*mlockall)(int flags);
	int (*setrlimit)(int resource, const struct rlimit *limit);
	int (*setrlimit64)(int resource, const struct rlimit64 *limit);
	int (*prlimit)(pid_t pid, int resource, const struct rlimit *limit, struct rlimit *before);
	int (*prlimit64)(pid_t pid, int resource, const struct rlimit64 *limit, struct rlimit64 *before);
};

extern struct real real __attribute__((visibility("hidden")));

/* Looks up the functions that are not known yet. Called by the constructor, and by a hook that is called
 * before it. */
void next_symbol_resolve(void);

/* Looks up those of the operators. Called by next_symbol_resolve once real.malloc is known. */
void next_symbol_resolve_operators(void);

/* Whether calls of this form are counted: the allocator itself defines it. */
bool next_symbol_counts(enum operator form);

/* At the end of the constructor: removes operators that are not counted from this library's symbol table. */
void next_symbol_hide_operators(void);

/* At the end of the constructor: makes the table read-only, as the GOT is under full RELRO. Not where the
 * kernel's pages are larger than the table's alignment: neighbours would become read-only with it. */
void next_symbol_protect(uint64_t page_bytes);

#endif
