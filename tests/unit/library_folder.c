/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The folder that is made in a target's root, where the target exchanges it between any two steps: by a mount
 * in its own namespace, a rename, a link. Nothing is done to what root has there.
 */
#include "sampler/inject/library_folder.h"
#include "sampler/intake/region.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include <linux/filter.h>
#include <linux/seccomp.h>

#include <cmocka.h>

#include "sampler/linux/proc.h"
#include "tests/unit/stranger.h"
#include "tests/unit/workshop.h"

/* What the target does to the folder. */
enum trick { NOTHING, MOUNT, RENAME, LINK };

static struct {
	enum trick after_made, before_removed;
	const char *victim;
	pid_t target;
	char parent[256], name[64];
} scene;

static int mount_there(void)
{
	char namespace[PROC_PATH_BYTES], path[400];
	int status = -1;

	snprintf(path, sizeof(path), "%s/%s", scene.parent, scene.name);
	pid_t child = fork();
	if (child == 0) {
		int fd = open(proc_path(namespace, scene.target, "ns/mnt"), O_RDONLY | O_CLOEXEC);

		_exit(fd < 0 || setns(fd, CLONE_NEWNS) != 0 ||
		    mount(scene.victim, path, NULL, MS_BIND, NULL) != 0);
	}
	return waitpid(child, &status, 0) == child ? status : -1;
}

static void play(enum trick trick)
{
	char path[400], away[256];

	snprintf(path, sizeof(path), "%s/%s", scene.parent, scene.name);
	snprintf(away, sizeof(away), "%s.away", scene.victim);
	bool played = trick == NOTHING || (trick == MOUNT && mount_there() == 0) ||
	    (trick == RENAME && rename(path, away) == 0 && rename(scene.victim, path) == 0) ||
	    (trick == LINK && rename(path, away) == 0 && symlink(scene.victim, path) == 0);
	if (!played)
		_exit(EXIT_FAILURE);
}

/* Between the steps of the process that makes the folder. */
int mkdirat(int parent_fd, const char *name, mode_t mode)
{
	static int (*real)(int, const char *, mode_t);
	char link[PROC_PATH_BYTES];

	if (!real)
		*(void **)&real = dlsym(RTLD_NEXT, "mkdirat");
	int error = real(parent_fd, name, mode);
	ssize_t length = readlink(proc_fd_path(link, parent_fd), scene.parent, sizeof(scene.parent) - 1);
	if (error == 0 && length > 0) {
		scene.parent[length] = '\0';
		snprintf(scene.name, sizeof(scene.name), "%s", name);
		play(scene.after_made);
	}
	return error;
}

int unlinkat(int fd, const char *name, int flags)
{
	static int (*real)(int, const char *, int);

	if (!real)
		*(void **)&real = dlsym(RTLD_NEXT, "unlinkat");
	if (scene.before_removed != NOTHING)
		play(scene.before_removed);
	scene.before_removed = NOTHING;
	return real(fd, name, flags);
}

static void be_a_target(int fd, void *argument)
{
	char byte = unshare(CLONE_NEWNS) != 0 || mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) != 0 ||
	    chroot(argument) != 0 || chdir("/") != 0;

	if (write(fd, &byte, 1) == 1)
		(void)!read(fd, &byte, 1);
}

/* A root with one place for files beside itself. */
static void open_scene(const struct workshop *shop, struct stranger *target)
{
	char byte = 1;

	assert_int_equal(workshop_run(shop,
	                     "umask 022; mkdir -p tmp victim; chmod 700 victim; echo own >victim/region; "
	                     "echo own >victim/libheaptap-attach.so; chmod 755 ."),
	    0);
	*target = stranger_start(be_a_target, (void *)(uintptr_t)workshop_path(shop, "."));
	scene.target = target->pid;
	assert_int_equal(read(target->fd, &byte, 1), 1);
	if (byte == 0)
		return;
	stranger_end(target);
	print_message("no mount namespace can be made here\n");
	skip();
}

/* All of it that a change would show in, wherever it is by now. */
static void look_at(const struct workshop *shop, const char *to)
{
	assert_int_equal(
	    workshop_run(shop,
	        "v=victim; test -e $v || v=$(echo tmp/.heaptap-*); test -d $v/. || v=$(echo .heaptap-*); "
	        "stat -c '%%a %%u %%y' $v $v/* >%s; cat $v/* >>%s; ls -A $v >>%s",
	        to, to, to),
	    0);
}

static void play_with(void **state, enum trick after_made, enum trick before_removed, const char *victim)
{
	const struct workshop *shop = *state;
	struct stranger target;
	struct handed handed;

	open_scene(shop, &target);
	scene.after_made = after_made;
	scene.before_removed = before_removed;
	scene.victim = victim ? victim : workshop_path(shop, "victim");
	look_at(shop, "before");
	int fd = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
	int error = library_folder_start(
	    &handed, target.pid, fd, &(const struct region){.fd = fd, .buffers_fd = fd}, -1);
	if (!error)
		handed_end(&handed);
	close(fd);
	scene.after_made = NOTHING;
	stranger_end(&target);
	look_at(shop, "after");
	assert_int_equal(workshop_run(shop, "cmp before after"), 0);
	if (after_made == NOTHING)
		assert_int_equal(error, 0);
	else
		assert_int_not_equal(error, 0);
	/* Of a rename or a link the target has what it has made. */
	if (after_made == NOTHING || after_made == MOUNT)
		assert_int_equal(workshop_run(shop, "test -z \"$(find . -name '.heaptap*')\""), 0);
}

static void nobody_does_anything(void **state)
{
	play_with(state, NOTHING, NOTHING, NULL);
}

static void a_folder_of_the_same_file_system_is_mounted_over_it(void **state)
{
	play_with(state, MOUNT, NOTHING, NULL);
}

static void a_folder_of_another_file_system_is_mounted_over_it(void **state)
{
	play_with(state, MOUNT, NOTHING, "/proc/sys");
}

static void another_folder_takes_its_name(void **state)
{
	play_with(state, RENAME, NOTHING, NULL);
}

static void a_link_takes_its_name(void **state)
{
	play_with(state, LINK, NOTHING, NULL);
}

static void a_folder_is_mounted_over_it_before_it_is_removed(void **state)
{
	play_with(state, NOTHING, MOUNT, NULL);
}

/* Mode and owner are right, and there is nothing in it: but it is older. */
static void an_empty_folder_takes_its_name(void **state)
{
	const struct workshop *shop = *state;
	struct stranger target;
	struct handed handed;
	struct statx status;
	struct timespec now;

	open_scene(shop, &target);
	assert_int_equal(workshop_run(shop, "mkdir -m 711 empty"), 0);
	scene.victim = workshop_path(shop, "empty");
	assert_int_equal(statx(AT_FDCWD, scene.victim, 0, STATX_BTIME, &status), 0);
	if (!(status.stx_mask & STATX_BTIME)) {
		stranger_end(&target);
		print_message("the file system does not say when a file was made\n");
		skip();
	}
	do
		clock_gettime(CLOCK_REALTIME_COARSE, &now);
	while (now.tv_sec == status.stx_btime.tv_sec && now.tv_nsec <= (long)status.stx_btime.tv_nsec);
	scene.after_made = RENAME;
	int fd = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
	int error = library_folder_start(
	    &handed, target.pid, fd, &(const struct region){.fd = fd, .buffers_fd = fd}, -1);
	scene.after_made = NOTHING;
	close(fd);
	if (!error)
		handed_end(&handed);
	stranger_end(&target);
	assert_int_not_equal(error, 0);
}

/* ---- a target in a user namespace, which has mounted a folder of root's where programs may keep files */

static bool write_map(const char *name, const char *text)
{
	char path[PROC_PATH_BYTES];
	int fd = open(proc_path(path, getpid(), name), O_WRONLY | O_CLOEXEC);
	bool written = fd >= 0 && write(fd, text, strlen(text)) == (ssize_t)strlen(text);

	if (fd >= 0)
		close(fd);
	return written;
}

static void be_a_user(int fd, void *argument)
{
	char byte = setresgid(65534, 65534, 65534) != 0 || setresuid(65534, 65534, 65534) != 0 ||
	    prctl(PR_SET_DUMPABLE, 1) != 0 || unshare(CLONE_NEWUSER | CLONE_NEWNS) != 0 ||
	    !write_map("setgroups", "deny") || !write_map("uid_map", "0 65534 1") ||
	    !write_map("gid_map", "0 65534 1") || chdir(argument) != 0 ||
	    mount("victim", "tmp", NULL, MS_BIND, NULL) != 0 || chroot(".") != 0;

	if (write(fd, &byte, 1) == 1)
		(void)!read(fd, &byte, 1);
}

static void nothing_is_made_where_its_user_can_make_nothing(void **state)
{
	const struct workshop *shop = *state;
	struct handed handed;
	char byte = 1;

	assert_int_equal(
	    workshop_run(shop, "umask 022; mkdir tmp victim; touch -d yesterday victim; chmod 755 ."), 0);
	struct stranger target = stranger_start(be_a_user, (void *)(uintptr_t)workshop_path(shop, "."));
	assert_int_equal(read(target.fd, &byte, 1), 1);
	if (byte != 0) {
		stranger_end(&target);
		print_message("no user namespace can be made here\n");
		skip();
	}
	look_at(shop, "before");
	int fd = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
	int error = library_folder_start(
	    &handed, target.pid, fd, &(const struct region){.fd = fd, .buffers_fd = fd}, -1);
	close(fd);
	if (!error)
		handed_end(&handed);
	stranger_end(&target);
	look_at(shop, "after");
	assert_int_equal(workshop_run(shop, "cmp before after"), 0);
	assert_int_equal(error, -EACCES);
}

/* ---- the folder's socket */

#ifdef SYS_chmod
enum { CHMOD = SYS_chmod };
#else
enum { CHMOD = SYS_fchmodat }; /* newer architectures have no other */
#endif

/* A change of mode could hit another file that has the name by then. */
static int refuse_changed_modes(void)
{
	struct sock_filter code[] = {
	    BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
	    BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_fchmod, 4, 0),
	    BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_fchmodat, 3, 0),
	    BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, 452 /* fchmodat2 */, 2, 0),
	    BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, CHMOD, 1, 0),
	    BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	    BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS),
	};
	const struct sock_fprog program = {.len = sizeof(code) / sizeof(code[0]), .filter = code};

	return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
	        prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program, 0, 0) == 0
	    ? 0
	    : -1;
}

static int socket_mode_of_a_folder(int library_fd, const struct region *region)
{
	struct handed handed;
	struct stat status;

	umask(077);
	if (refuse_changed_modes() != 0)
		return 1;
	if (library_folder_start(&handed, getpid(), library_fd, region, -1) != 0)
		return 2;
	int error = stat(handed.region_path, &status) == 0 && S_ISSOCK(status.st_mode) &&
	        (status.st_mode & 0222) == 0222
	    ? 0
	    : 3;
	handed_end(&handed);
	return error;
}

static void everybody_may_connect_and_no_mode_is_changed(void **state)
{
	int status;

	(void)state;
	struct region region = {.fd = open("/dev/null", O_RDONLY | O_CLOEXEC), .buffers_fd = -1};
	int library_fd = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
	pid_t child = fork();
	if (child == 0)
		_exit(socket_mode_of_a_folder(library_fd, &region));
	assert_int_equal(waitpid(child, &status, 0), child);
	if (WIFEXITED(status) && WEXITSTATUS(status) == 1) {
		print_message("no filters of system calls here\n");
		skip();
	}
	assert_int_equal(status, 0);
	close(library_fd);
	region_close(&region);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(everybody_may_connect_and_no_mode_is_changed),
#define PLAY(name) cmocka_unit_test_setup_teardown(name, workshop_open, workshop_close)
	    PLAY(nobody_does_anything),
	    PLAY(a_folder_of_the_same_file_system_is_mounted_over_it),
	    PLAY(a_folder_of_another_file_system_is_mounted_over_it),
	    PLAY(another_folder_takes_its_name),
	    PLAY(a_link_takes_its_name),
	    PLAY(a_folder_is_mounted_over_it_before_it_is_removed),
	    PLAY(an_empty_folder_takes_its_name),
	    PLAY(nothing_is_made_where_its_user_can_make_nothing),
	};

	return cmocka_run_group_tests_name("folder", tests, NULL, NULL);
}
