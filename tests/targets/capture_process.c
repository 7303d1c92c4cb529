/* SPDX-License-Identifier: Apache-2.0 */
/* build: -fno-builtin -Wno-all -ldl */
/*
 * The ways in which processes come, change and go. Each mode allocates by take() alone what it wants to find
 * again, and says at its end, on a line of its own per process, what it took: `truth PID OBJECTS BYTES
 * INUSE_BYTES`.
 *
 *   capture_process MODE [ARGUMENT...]
 */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <spawn.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define NAMED __attribute__((noinline, noclone))
extern char **environ;
static _Atomic long objects, bytes, inuse;
static int report_fd = 1;

NAMED void *take(size_t size)
{
	void *block = malloc(size);

	if (!block)
		abort();
	memset(block, 0x77, size < 4096 ? size : 4096);
	objects++;
	bytes += (long)size;
	inuse += (long)size;
	return block;
}

static void drop(void *block, size_t size)
{
	free(block);
	inuse -= (long)size;
}

static void report(void)
{
	char text[128];
	int length =
	    snprintf(text, sizeof(text), "truth %d %ld %ld %ld\n", (int)getpid(), objects, bytes, inuse);

	if (write(report_fd, text, (size_t)length) != length)
		_exit(3);
}

static void forget(void)
{
	objects = bytes = inuse = 0;
}

static void must(int status)
{
	if (status != 0) {
		dprintf(2, "status %x\n", status);
		exit(1);
	}
}

static void join(pid_t pid) /* 0: any child */
{
	int status = -1;

	if (pid < 0 || waitpid(pid, &status, 0) <= 0)
		status = -1;
	must(status);
}

static void churn(int count, size_t size)
{
	for (int i = 0; i < count; i++) {
		void *kept = take(size), *gone = take(size);

		drop(gone, size);
		(void)kept;
	}
}

/* A child allocates, says what it took of its own if it is to, and ends. */
static void child(int count, size_t size, int reports)
{
	pid_t pid = fork();

	if (pid == 0) {
		if (reports)
			forget();
		churn(count, size);
		if (reports)
			report();
		_exit(0);
	}
	join(pid);
}

/* ---- modes */

/* A child frees half of what it inherited and takes some of its own. */
static int mode_fork(int argc, char *argv[])
{
	void *held[100];

	for (int i = 0; i < 100; i++)
		held[i] = take(10000);
	for (int n = 0; n < 3; n++) {
		pid_t pid = fork();

		if (pid == 0) {
			forget();
			for (int i = 0; i < 50; i++)
				free(held[i]);
			churn(20, 7000);
			report();
			_exit(0);
		}
		join(pid);
	}
	churn(10, 500);
	report();
	return 0;
}

/* Children that do exactly the same: their samples must not fall in the same places. */
static int mode_siblings(int argc, char *argv[])
{
	take(100);
	for (int i = 0; i < 40; i++)
		child(32, 4096, 1);
	report();
	return 0;
}

static int mode_vfork(int argc, char *argv[])
{
	for (int i = 0; i < 20; i++) {
		pid_t pid = vfork();

		if (pid == 0) {
			take(3000); /* the parent's memory, so the parent's block */
			_exit(0);
		}
		join(pid);
	}
	report();
	return 0;
}

static int mode_spawn(int argc, char *argv[])
{
	char *const arguments[] = {"true", NULL};

	churn(10, 1000);
	for (int i = 0; i < 20; i++) {
		pid_t pid;

		must(posix_spawnp(&pid, "true", NULL, NULL, arguments, environ));
		join(pid);
		must(system("true"));
	}
	churn(10, 1000);
	report();
	return 0;
}

/* A fork that the libc does not know of. */
static int mode_clone(int argc, char *argv[])
{
	churn(10, 1000);
	for (int i = 0; i < 5; i++) {
		pid_t pid = (pid_t)syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0);

		if (pid == 0) {
			churn(10, 1000);
			_exit(0);
		}
		join(pid);
	}
	churn(10, 1000);
	report();
	return 0;
}

static int mode_exec(int argc, char *argv[])
{
	int left = argc > 2 ? atoi(argv[2]) : 0;
	char text[16];

	churn(10, 1000);
	report();
	if (left == 0)
		return 0;
	snprintf(text, sizeof(text), "%d", left - 1);
	execl(argv[3], argv[0], "exec", text, argv[3], NULL);
	return 1;
}

/* Lives on when COMMAND has ended, without its session, folder and descriptors. */
static int mode_daemon(int argc, char *argv[])
{
	int go[2];

	if (pipe(go) != 0)
		return 1;
	take(100);
	if (fork() == 0) {
		setsid();
		if (fork() != 0)
			_exit(0);
		forget();
		char byte;
		close(go[1]);
		if (read(go[0], &byte, 1) != 0) /* until COMMAND is gone */
			_exit(1);
		report_fd = open(argv[2], O_WRONLY | O_CREAT | O_TRUNC | O_APPEND, 0600);
		if (chdir("/") != 0)
			_exit(1);
		for (int fd = 0; fd < 64; fd++)
			if (fd != report_fd)
				close(fd);
		churn(30, 2000);
		usleep(300000);
		churn(30, 2000);
		report();
		_exit(0);
	}
	return 0;
}

static int mode_closed(int argc, char *argv[])
{
	churn(10, 1000);
	report_fd = fcntl(1, F_DUPFD, 700);
	must(close_range(0, 699, 0) || close_range(701, ~0u, 0));
	churn(10, 1000);
	if (fork() == 0) {
		churn(1, 1000);
		_exit(0);
	}
	wait(NULL);
	for (int fd = 0; fd < 1000; fd++)
		if (fd != report_fd)
			dup2(report_fd, fd);
	churn(10, 1000);
	report();
	return 0;
}

static void *short_thread(void *argument)
{
	void *block = take(100);

	drop(take(200), 200);
	if ((intptr_t)argument % 2)
		drop(block, 100);
	return NULL;
}

static int mode_threads(int argc, char *argv[])
{
	int count = atoi(argv[2]);

	for (int i = 0; i < count; i += 8) {
		pthread_t threads[8];

		for (intptr_t n = 0; n < 8; n++)
			must(pthread_create(&threads[n], NULL, short_thread, (void *)n));
		for (int n = 0; n < 8; n++)
			pthread_join(threads[n], NULL);
	}
	report();
	return 0;
}

static pthread_key_t key;

static void destroy(void *block)
{
	static _Thread_local int times;

	drop(block, 1000);
	if (++times < 3)
		pthread_setspecific(key, take(1000)); /* once more, after other destructors have run */
	else
		drop(take(500), 500);
}

static void *with_destructor(void *argument)
{
	pthread_setspecific(key, take(1000));
	return NULL;
}

static void at_exit(void)
{
	static int times;

	drop(take(300), 300);
	take(50);
	if (++times < 4)
		atexit(at_exit);
	else
		report();
}

static int mode_destructors(int argc, char *argv[])
{
	pthread_key_create(&key, destroy);
	for (int i = 0; i < 50; i++) {
		pthread_t thread;

		must(pthread_create(&thread, NULL, with_destructor, NULL));
		pthread_join(thread, NULL);
	}
	atexit(at_exit);
	return 0;
}

/* argv[2]: a library with plugin_take() and plugin_free(); argv[3]: what to give to dlopen besides RTLD_NOW.
 * */
static int mode_plugin(int argc, char *argv[])
{
	int flags = strcmp(argv[3], "deepbind") == 0 ? RTLD_DEEPBIND : 0;

	for (int i = 0; i < 50; i++) {
		void *handle = dlopen(argv[2], RTLD_NOW | flags);

		if (!handle)
			return 1;
		void *(*plugin_take)(size_t) = dlsym(handle, "plugin_take");
		void (*plugin_free)(void *) = dlsym(handle, "plugin_free");
		void *ours = take(5000), *its = plugin_take(5000);
		plugin_free(ours); /* a free that the hook does not see, under deepbind */
		inuse -= 5000;
		free(its);
		drop(take(5000), 5000);
		must(dlclose(handle));
	}
	report();
	return 0;
}

static int mode_dumpable(int argc, char *argv[])
{
	prctl(PR_SET_DUMPABLE, 0);
	churn(20, 3000);
	usleep(300000);
	churn(20, 3000);
	report();
	return 0;
}

static int mode_setuid(int argc, char *argv[])
{
	churn(10, 3000);
	must(setgid(65534) || setuid(65534));
	churn(10, 3000);
	child(10, 3000, 1);
	usleep(100000);
	churn(10, 3000);
	report();
	return 0;
}

static int mode_chroot(int argc, char *argv[])
{
	churn(10, 3000);
	must(chroot(argv[2]) || chdir("/"));
	churn(10, 3000);
	child(10, 3000, 1);
	report();
	return 0;
}

static int mode_limits(int argc, char *argv[])
{
	const struct rlimit none = {0, 0};

	churn(10, 3000);
	must(setrlimit(RLIMIT_NOFILE, &none) || setrlimit(RLIMIT_MEMLOCK, &none));
	churn(100, 3000);
	child(10, 3000, 0);
	report();
	return 0;
}

/* argv[2] children in all, argv[3] alive at once. */
static int mode_storm(int argc, char *argv[])
{
	int count = atoi(argv[2]), at_once = atoi(argv[3]), alive = 0;

	churn(100, 3000);
	for (int i = 0; i < count; i++) {
		if (alive == at_once) {
			join(0);
			alive--;
		}
		pid_t pid = fork();
		if (pid == 0) {
			churn(10, 3000);
			usleep((useconds_t)(i % 16) * 1000);
			churn(10, 3000);
			_exit(0);
		}
		if (pid < 0)
			return 1;
		alive++;
	}
	for (; alive > 0; alive--)
		join(0);
	report();
	return 0;
}

/* Busy threads while others fork: the child is in the middle of whatever they were doing. */
static _Atomic int stop;

static void *busy(void *argument)
{
	while (!stop) {
		void *blocks[20];

		for (int i = 0; i < 20; i++)
			blocks[i] = malloc(100 + (size_t)i * 50);
		for (int i = 0; i < 20; i++)
			free(blocks[i] = realloc(blocks[i], 3000));
	}
	return NULL;
}

static int mode_busyfork(int argc, char *argv[])
{
	pthread_t threads[6];

	for (int i = 0; i < 6; i++)
		must(pthread_create(&threads[i], NULL, busy, NULL));
	for (int i = 0; i < atoi(argv[2]); i++) {
		pid_t pid = fork();

		if (pid == 0) {
			pthread_t thread;

			churn(10, 3000);
			must(pthread_create(&thread, NULL, short_thread, NULL));
			pthread_join(thread, NULL);
			_exit(0);
		}
		join(pid);
	}
	stop = 1;
	for (int i = 0; i < 6; i++)
		pthread_join(threads[i], NULL);
	report();
	return 0;
}

static const struct mode {
	const char *name;
	int (*run)(int argc, char *argv[]);
} modes[] = {
    {"fork", mode_fork},
    {"siblings", mode_siblings},
    {"vfork", mode_vfork},
    {"spawn", mode_spawn},
    {"clone", mode_clone},
    {"exec", mode_exec},
    {"daemon", mode_daemon},
    {"closed", mode_closed},
    {"threads", mode_threads},
    {"destructors", mode_destructors},
    {"plugin", mode_plugin},
    {"dumpable", mode_dumpable},
    {"setuid", mode_setuid},
    {"chroot", mode_chroot},
    {"limits", mode_limits},
    {"storm", mode_storm},
    {"busyfork", mode_busyfork},
};

int main(int argc, char *argv[])
{
	for (size_t i = 0; argc > 1 && i < sizeof(modes) / sizeof(modes[0]); i++)
		if (strcmp(argv[1], modes[i].name) == 0)
			return modes[i].run(argc, argv);
	return 2;
}
