/* SPDX-License-Identifier: Apache-2.0 */
#include "sampler/symbol/split_files.h"

#include "sampler/linux/confinement.h"

#include <dwarf.h>
#include <errno.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <ucontext.h>

static struct {
	const struct debuginfo_files *files; /* NULL: nothing is opened */
	const char *path;
	unsigned asked;
	bool prepared;
} split;

static int open_beside(const char *name)
{
	const char *slash = strrchr(split.path, '/');
	char path[PATH_MAX];

	if (!slash ||
	    snprintf(path, sizeof(path), "%.*s%s", (int)(slash + 1 - split.path), split.path, name) >=
	        (int)sizeof(path))
		return -ENOENT;
	return split.files->open(split.files->context, path);
}

/* The path is that of the machine on which the program was built. libdw asks for no other than absolute
 * ones. */
static int open_split(const char *path)
{
	int fd;

	if (!split.files || path[0] != '/' || split.asked++ >= SPLIT_FILES_MAX)
		return -EPERM;
	fd = split.files->open(split.files->context, path);
	return fd < 0 ? open_beside(strrchr(path, '/') + 1) : fd;
}

/* Runs inside of openat(2): the path is libdw's string. */
static void on_open(int signal, siginfo_t *info, void *context)
{
	ucontext_t *interrupted = context;
	const int saved = errno;

	(void)signal;
	(void)info;
#ifdef __x86_64__
	const char *path = (const char *)interrupted->uc_mcontext.gregs[REG_RSI];
	interrupted->uc_mcontext.gregs[REG_RAX] = open_split(path);
#else
	const char *path = (const char *)interrupted->uc_mcontext.regs[1];
	interrupted->uc_mcontext.regs[0] = (unsigned long long)(long long)open_split(path);
#endif
	errno = saved;
}

void split_files_prepare(void)
{
	const struct sigaction action = {.sa_sigaction = on_open, .sa_flags = SA_SIGINFO | SA_NODEFER};

	split.prepared = sigaction(SIGSYS, &action, NULL) == 0 && confinement_trap_opens();
}

void split_files_begin(const struct debuginfo_files *files, const char *path)
{
	split.files = split.prepared ? files : NULL;
	split.path = path;
}

bool split_files_find(Dwarf_Die *unit, Dwarf_Die *found)
{
	uint8_t type;

	return split.files && dwarf_cu_info(unit->cu, NULL, &type, NULL, found, NULL, NULL, NULL) == 0 &&
	    found->addr;
}
