/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The families of functions that jemalloc, mimalloc and tcmalloc have beside malloc (family_list.h).
 *
 * This library defines none of their names where anybody could find them: a program finds out by a weak
 * reference to mallocx, or by dlsym, whether it runs on jemalloc, and must not be told so because of us.
 * Instead, if an allocator is there, the references to it are redirected to hooks (redirect.h). Each hook
 * calls the function that the reference led to, and counts what that has allocated or will free.
 */
#ifndef PRELOAD_FAMILY_H
#define PRELOAD_FAMILY_H

/* Once, from this library's constructor, and only in a process that is profiled. A few system calls
 * (mprotect) if there is such an allocator, else none. What the constructors of libraries have allocated
 * before, and what allocators allocate that are loaded later, is not seen. */
void family_redirect(void);

#endif
