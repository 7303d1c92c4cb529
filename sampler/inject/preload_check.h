/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Checks COMMAND's file before COMMAND starts: will the loader preload our library, and is that safe? COMMAND
 * is run whatever the result. And checks the library itself.
 */
#ifndef SAMPLER_INJECT_PRELOAD_CHECK_H
#define SAMPLER_INJECT_PRELOAD_CHECK_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

enum preload_check_kind {
	PRELOAD_CHECK_DYNAMIC, /* the loader will probably read LD_PRELOAD */
	PRELOAD_CHECK_MUSL,    /* the same; the loader is musl's, which is also its C library */
	PRELOAD_CHECK_UNKNOWN, /* not found, unreadable, not an ELF file: exec will report it */
	PRELOAD_CHECK_STATIC,  /* no loader: nothing can be preloaded */
	/* setuid, setgid or file capabilities that take effect: the loader ignores LD_PRELOAD */
	PRELOAD_CHECK_PRIVILEGED,
	PRELOAD_CHECK_FOREIGN, /* another architecture or word size: the loader cannot load our library */
	/* the program or LD_PRELOAD needs a sanitizer's runtime that must come first and otherwise ends the
	 * program: our library must not be preloaded */
	PRELOAD_CHECK_SANITIZER,
};

/* The process that will execute COMMAND. */
struct preload_check_who {
	uid_t uid; /* real ids */
	gid_t gid;
	bool no_new_privs;
	const char *preload; /* what else LD_PRELOAD holds there, besides our library; NULL: unknown */
	/* Opens a regular file for reading as the process sees it; must not open a file of another type, not
	 * even to look at it. Returns a descriptor or -errno. NULL: the process sees our files. */
	int (*open)(const void *context, const char *path);
	const void *context;
};

/* Looks up `command` in PATH as execvp does, and follows a script's interpreter. For an exec by this process,
 * or by another. */
enum preload_check_kind preload_check_inspect(const char *command);
enum preload_check_kind preload_check_inspect_by(const char *command, const struct preload_check_who *who);

/* A clause for the user, such as "is statically linked", or NULL for DYNAMIC, MUSL and UNKNOWN. */
const char *preload_check_obstacle(enum preload_check_kind kind);
/* The same with a subject: "it is statically linked". */
const char *preload_check_reason(enum preload_check_kind kind);

/* Checks the file of our own library, which was found. A loader that maps half of a library ends the program:
 * SIGBUS. copied: programs load a copy in memory. Returns 0, or -errno with a clause in `why`: "has 0 bytes:
 * it is not a library". */
enum { PRELOAD_CHECK_WHY_BYTES = 128 };
int preload_check_library(const char *path, bool copied, char why[PRELOAD_CHECK_WHY_BYTES]);

#endif
