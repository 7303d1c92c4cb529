/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Checks COMMAND's file before it starts: will the loader preload our library, and may it? Whatever the
 * result, COMMAND is run.
 */
#ifndef SAMPLER_LOADER_PRELOAD_CHECK_H
#define SAMPLER_LOADER_PRELOAD_CHECK_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

enum preload_check_kind {
	PRELOAD_CHECK_DYNAMIC, /* the loader will probably read LD_PRELOAD */
	PRELOAD_CHECK_MUSL,    /* the same; it is musl's, which is its C library, too */
	PRELOAD_CHECK_UNKNOWN, /* not found, unreadable, not an ELF file: exec will report it */
	PRELOAD_CHECK_STATIC,  /* no loader: nothing can be preloaded */
	/* setuid, setgid or file capabilities that take effect: the loader ignores LD_PRELOAD */
	PRELOAD_CHECK_PRIVILEGED,
	PRELOAD_CHECK_FOREIGN, /* another architecture or word size: the loader cannot load our library */
	/* needs, or LD_PRELOAD names, the runtime of a sanitizer that must come first, and ends the program
	 * if it does not: our library must not be preloaded */
	PRELOAD_CHECK_SANITIZER,
};

/* The process that executes it. */
struct preload_check_who {
	uid_t uid; /* real ids */
	gid_t gid;
	bool no_new_privs;
	const char
	    *preload; /* what LD_PRELOAD holds there besides our library; NULL: nothing is known of it */
	/* Where its files are: opens a regular file for reading, and nothing else, not even to see what
	 * that is. A descriptor or -errno. NULL: they are those of this process. */
	int (*open)(const void *context, const char *path);
	const void *context;
};

/* `command` is looked up in PATH as execvp does; a script's interpreter is followed. Executed by this
 * process, or by another. */
enum preload_check_kind preload_check_inspect(const char *command);
enum preload_check_kind preload_check_inspect_by(const char *command, const struct preload_check_who *who);

/* A clause for the user, such as "is statically linked", or NULL for DYNAMIC, MUSL and UNKNOWN. */
const char *preload_check_obstacle(enum preload_check_kind kind);

#endif
