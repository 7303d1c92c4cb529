/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What part of a program a frame is from: the user's own code, a library below it, or the allocator. Decided
 * by its name and by the file its code is in, so that the same frame is the same in every profile.
 *
 * A role never changes a number: it decides which frame of a stack names the stack (row_label.h).
 */
#ifndef PPROF_ANALYSIS_FRAME_ROLE_H
#define PPROF_ANALYSIS_FRAME_ROLE_H

enum frame_role {
	FRAME_OWN, /* everything that is none of the others */
	/* a function of a script or of bytecode, named by the program that made machine code of it: Python's
	 * py::f:FILE, V8's JS:^f FILE, Java's; the second, of the language's own library or of a package
	 * that is installed (site-packages, node_modules) */
	FRAME_SCRIPT,
	FRAME_SCRIPT_LIBRARY,
	/* C++: std::, __gnu_cxx::, __cxxabiv1::; Rust: std::, core::, alloc::, hashbrown::; the files of
	 * libc, libstdc++, libc++, libgcc, of allocators and of the dynamic loader; _start; code that V8 and
	 * the JVM make for themselves */
	FRAME_LIBRARY,
	/* malloc and its family with any prefix, and wrappers that are named after it (xmalloc, g_malloc0,
	 * zmalloc_usable, _PyObject_Calloc); operator new; Rust's __rust_alloc; [mmap] */
	FRAME_ALLOCATOR,
	/* its name speaks of allocating: a wrapper if several functions call it (row_label.h), else
	 * FRAME_OWN */
	FRAME_ALLOCATES,
	/* no function is known: [libfoo.so], libfoo.so+0x1a2b, [jit], [guessed] */
	FRAME_UNNAMED,
	/* the same in the program's own file, which is no library: server+0x3a10 */
	FRAME_UNNAMED_OWN,
};

/* name as in the profile, brief its short form (short_name.h); module: path of the file, "" unknown. */
enum frame_role frame_role(const char *name, const char *brief, const char *module);

#endif
