/* SPDX-License-Identifier: Apache-2.0 */
#include "sampler/inject/target_context.h"

#include "sampler/linux/proc.h"
#include "sampler/linux/regular_file.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>
#include <linux/capability.h>

static const struct {
	const char *name;
	int kind;
} namespaces[] = {{"ns/net", CLONE_NEWNET}, {"ns/ipc", CLONE_NEWIPC}, {"ns/uts", CLONE_NEWUTS},
    {"ns/cgroup", CLONE_NEWCGROUP}, {"ns/mnt", CLONE_NEWNS}, {"ns/pid", CLONE_NEWPID}};

enum { MOUNTS = TARGET_NAMESPACES - 2, PIDS };

_Static_assert(sizeof(namespaces) / sizeof(namespaces[0]) == TARGET_NAMESPACES, "one descriptor each");

/* ---- looking up the target */

static void close_fd(int *fd)
{
	if (*fd >= 0)
		close(*fd);
	*fd = -1;
}

/* Returns 0 and a descriptor, which is -1 if the namespace is our own or the kernel has no such namespaces;
 * or -errno. */
static int open_namespace(int *fd, pid_t target, const char *name)
{
	char path[PROC_PATH_BYTES];
	struct stat own, other;

	*fd = -1;
	if (stat(proc_path(path, getpid(), name), &own) != 0)
		return errno == ENOENT ? 0 : -errno;
	*fd = open(proc_path(path, target, name), O_RDONLY | O_CLOEXEC);
	if (*fd < 0 || fstat(*fd, &other) != 0)
		return -errno;
	if (other.st_ino == own.st_ino && other.st_dev == own.st_dev)
		close_fd(fd);
	return 0;
}

/* The folder alone does not tell: it may be mounted in two places with different folders below. */
static bool is_own_root(int root_fd)
{
	struct stat own, other;
	int fd = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC), mount = regular_file_mount(root_fd);
	bool same = fd >= 0 && mount >= 0 && mount == regular_file_mount(fd) && fstat(fd, &own) == 0 &&
	    fstat(root_fd, &other) == 0 && own.st_ino == other.st_ino && own.st_dev == other.st_dev;

	if (fd >= 0)
		close(fd);
	return same;
}

/* The number of an id in a user namespace, by the namespace's map. */
static int map_id(pid_t target, const char *name, unsigned int *id)
{
	unsigned int inner, outer, length;
	int error = -EPERM;
	FILE *map = proc_open_text(target, name);

	while (map && error && fscanf(map, "%u %u %u", &inner, &outer, &length) == 3)
		if (*id >= outer && *id - outer < length) {
			*id = inner + (*id - outer);
			error = 0;
		}
	if (map)
		fclose(map);
	return error;
}

/* The ids that count when the target opens a file: the last of four. */
static int read_ids(struct target_context *context, pid_t target)
{
	char status[4096];
	ssize_t length = proc_read(target, "status", status, sizeof(status));
	const char *user = strstr(status, "\nUid:"), *group = strstr(status, "\nGid:");

	if (length < 0 || !user || !group || sscanf(user, " Uid: %*u %*u %*u %u", &context->user) != 1 ||
	    sscanf(group, " Gid: %*u %*u %*u %u", &context->group) != 1)
		return length < 0 ? (int)length : -EIO;
	context->own_ids =
	    geteuid() == context->user && getuid() == context->user && getegid() == context->group;
	if (context->own_users)
		return 0;
	int error = map_id(target, "uid_map", &context->user);
	return error ? error : map_id(target, "gid_map", &context->group);
}

int target_context_open(struct target_context *context, pid_t target)
{
	char path[PROC_PATH_BYTES];

	*context = (struct target_context){.root_fd = -1};
	int error = open_namespace(&context->user_fd, target, "ns/user");
	for (int i = 0; !error && i < TARGET_NAMESPACES; i++)
		error = open_namespace(&context->fds[i], target, namespaces[i].name);
	if (error)
		return error;
	context->own_users = context->user_fd < 0;
	context->own_pids = context->fds[PIDS] < 0;
	context->root_fd = open(proc_path(path, target, "root"), O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (context->root_fd < 0)
		return -errno;
	context->own_root = is_own_root(context->root_fd);
	return read_ids(context, target);
}

/* ---- becoming one of the target's processes */

/* Closes the namespaces that are entered. */
static void enter_each(struct target_context *context)
{
	for (int i = 0; i < TARGET_NAMESPACES; i++)
		if (context->fds[i] >= 0 && setns(context->fds[i], namespaces[i].kind) == 0)
			close_fd(&context->fds[i]);
	context->without_groups = context->without_groups || setgroups(0, NULL) == 0;
}

/* In another user namespace this process has our user for a while, and the namespace's owner has power over
 * that user there. Only because its memory is not dumpable can the owner not look into it. */
static int hide(void)
{
	return prctl(PR_SET_DUMPABLE, 0) == 0 ? 0 : -errno;
}

/*
 * Root enters the user namespace last, and drops its groups before, which may be forbidden inside. Other
 * users may enter the other namespaces only from inside the user namespace. If a filter of system calls
 * refuses setns, as in the daemon's unit, we can still join a process of our own pid and user namespace. We
 * then keep our mount namespace, which nobody can enter without CAP_SYS_ADMIN on the machine.
 */
int target_context_enter(struct target_context *context)
{
	int error = hide();

	if (error)
		return error;
	enter_each(context);
	if (!context->own_users && setns(context->user_fd, CLONE_NEWUSER) != 0)
		return -errno;
	close_fd(&context->user_fd);
	error = hide(); /* the kernel has reset the flag */
	enter_each(context);
	bool alone = context->own_users && context->own_pids;
	if (!error && (context->fds[PIDS] >= 0 || (!alone && context->fds[MOUNTS] >= 0)))
		error = -EPERM;
	return error;
}

static int drop_capabilities(void)
{
	struct __user_cap_header_struct header = {_LINUX_CAPABILITY_VERSION_3, 0};
	struct __user_cap_data_struct none[_LINUX_CAPABILITY_U32S_3] = {{0}};

	/* Without the second call, an exec would give root of a container all our capabilities again. */
	if (syscall(SYS_capset, &header, none) != 0 || prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0)
		return -errno;
	return 0;
}

int target_context_become(struct target_context *context)
{
	if (fchdir(context->root_fd) != 0 || (!context->own_root && chroot(".") != 0))
		return -errno;
	close_fd(&context->root_fd);
	for (int i = 0; i < TARGET_NAMESPACES; i++)
		close_fd(&context->fds[i]);
	if (!context->without_groups && !context->own_ids)
		return -EPERM;
	if (setresgid(context->group, context->group, context->group) != 0 ||
	    setresuid(context->user, context->user, context->user) != 0)
		return -errno;
	int error = hide();
	return error ? error : drop_capabilities();
}
