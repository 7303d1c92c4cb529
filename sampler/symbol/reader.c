/* SPDX-License-Identifier: Apache-2.0 */
#include "sampler/symbol/reader.h"

#include "sampler/linux/confinement.h"
#include "sampler/linux/proc.h"
#include "sampler/linux/regular_file.h"
#include "sampler/symbol/debuginfo.h"
#include "sampler/symbol/debuginfod.h"
#include "sampler/symbol/demangle.h"
#include "sampler/symbol/symcodec.h"
#include "sampler/symbol/symsource.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum {
	FULL_SECONDS = 30, /* of CPU time: the C library's debug file takes 0.1 */
	FUNCTIONS_SECONDS = 10,
	START_TRIES = 100, /* 0.1 s apart, while fork fails */
	OPENS_MAX = 2 * SPLIT_FILES_MAX + 64,
	LOOK_MS = 200,
	ASLEEP_LOOKS_MAX = 25, /* the child may sleep for an instant before it gets our message */
	BUILD_ID_BYTES_MAX = 64,
	OWN_STACK_BYTES = 4 << 20, /* of what calls the demangler */
	/* Limits of an answer: the names of one file, and what each address may add. */
	ANSWER_BYTES_MAX = 64 << 20,
	ADDRESS_BYTES_MAX = 8192,
};

enum message { MESSAGE_OPEN, MESSAGE_FETCH, MESSAGE_SOURCE, MESSAGE_ANSWER };

struct header {
	uint32_t message, bytes;
};

/* The content of MESSAGE_SOURCE. */
struct source {
	uint64_t id;
	int32_t error; /* of symsource_open */
	uint32_t debug_file;
};

/* Called after a send() or recv() that did nothing: shall we go on waiting? `waiting` is NULL in the child,
 * whose end of the socket has no timeout. */
static bool is_to_go_on(struct reader *waiting)
{
	if (errno == EINTR)
		return true;
	if (!waiting || (errno != EAGAIN && errno != EWOULDBLOCK))
		return false;
	waiting->asleep += proc_state(waiting->pid) == 'S';
	return waiting->asleep < ASLEEP_LOOKS_MAX;
}

static int send_all(int fd, struct reader *waiting, const void *from, size_t bytes)
{
	for (size_t done = 0; done < bytes;) {
		ssize_t sent = send(fd, (const char *)from + done, bytes - done, MSG_NOSIGNAL);

		if (sent < 0 && is_to_go_on(waiting))
			continue;
		if (sent <= 0)
			return -EPIPE;
		done += (size_t)sent;
	}
	return 0;
}

static int receive_all(int fd, struct reader *waiting, void *to, size_t bytes)
{
	for (size_t done = 0; done < bytes;) {
		ssize_t got = recv(fd, (char *)to + done, bytes - done, 0);

		if (got < 0 && is_to_go_on(waiting))
			continue;
		if (got <= 0)
			return -EPIPE;
		done += (size_t)got;
	}
	return 0;
}

static int send_message(int fd, enum message message, const void *from, size_t bytes)
{
	const struct header header = {message, (uint32_t)bytes};
	int err = send_all(fd, NULL, &header, sizeof(header));

	return err ? err : send_all(fd, NULL, from, bytes);
}

/* An int32_t, followed by a descriptor if the number is 0. */
union control {
	struct cmsghdr header;
	char bytes[CMSG_SPACE(sizeof(int))];
};

static int send_descriptor(int socket, int32_t error, int fd)
{
	union control control = {{0}};
	struct iovec data = {&error, sizeof(error)};
	struct msghdr message = {.msg_iov = &data, .msg_iovlen = 1};

	if (error == 0) {
		message.msg_control = &control;
		message.msg_controllen = sizeof(control);
		struct cmsghdr *header = CMSG_FIRSTHDR(&message);
		header->cmsg_level = SOL_SOCKET;
		header->cmsg_type = SCM_RIGHTS;
		header->cmsg_len = CMSG_LEN(sizeof(int));
		memcpy(CMSG_DATA(header), &fd, sizeof(fd));
	}
	return sendmsg(socket, &message, MSG_NOSIGNAL) == (ssize_t)sizeof(error) ? 0 : -EPIPE;
}

static int receive_descriptor(int socket)
{
	union control control;
	int32_t error = -EPIPE;
	struct iovec data = {&error, sizeof(error)};
	struct msghdr message = {
	    .msg_iov = &data, .msg_iovlen = 1, .msg_control = &control, .msg_controllen = sizeof(control)};
	ssize_t got;
	int fd;

	while ((got = recvmsg(socket, &message, MSG_CMSG_CLOEXEC)) < 0 && errno == EINTR)
		;
	struct cmsghdr *header = got == (ssize_t)sizeof(error) ? CMSG_FIRSTHDR(&message) : NULL;
	if (error || !header)
		return error ? error : -EPIPE;
	memcpy(&fd, CMSG_DATA(header), sizeof(fd));
	return fd;
}

/* ---- in the child */

static int ask_to_open(void *context, const char *path)
{
	const int *socket = context;
	int err = send_message(*socket, MESSAGE_OPEN, path, strlen(path));

	return err ? err : receive_descriptor(*socket);
}

static int ask_to_fetch(void *context, const uint8_t *build_id, size_t build_id_bytes)
{
	const int *socket = context;
	int err = send_message(*socket, MESSAGE_FETCH, build_id, build_id_bytes);

	return err ? err : receive_descriptor(*socket);
}

static int send_answer(int socket, struct symsource *source, const uint64_t *vaddrs, size_t n)
{
	struct symbol_result *results = calloc(n + 1, sizeof(*results));
	uint8_t *bytes = NULL;
	size_t byte_count = 0;
	int err = results ? symsource_resolve(source, vaddrs, n, results) : -ENOMEM;

	if (!err)
		err = symcodec_encode(&source->facts, vaddrs, results, n, &bytes, &byte_count);
	/* An empty answer: there was not enough memory for a real one. */
	return send_message(socket, MESSAGE_ANSWER, bytes, err ? 0 : byte_count);
}

static int read_file(int socket, const struct symbol_file *file, const struct symbol_options *options)
{
	struct string_pool *names = string_pool_new();
	const struct debuginfo_files files = {ask_to_open, ask_to_fetch, &socket};
	struct symsource opened;
	uint64_t n, *vaddrs;
	int err;

	if (!names)
		return -ENOMEM;
	split_files_begin(&files, file->path);
	err = symsource_open(&opened, file, options, &files, names);
	const struct source source = {err ? 0 : symsource_id(&opened), err, !err && opened.facts.debug_file};
	if (send_message(socket, MESSAGE_SOURCE, &source, sizeof(source)) != 0 ||
	    receive_all(socket, NULL, &n, sizeof(n)) != 0)
		return -EPIPE;
	vaddrs = calloc(n + 1, sizeof(*vaddrs));
	if (!vaddrs || receive_all(socket, NULL, vaddrs, n * sizeof(*vaddrs)) != 0)
		return -EPIPE;
	string_pool_limit(names, ANSWER_BYTES_MAX / 2 + n * ADDRESS_BYTES_MAX / 4);
	return send_answer(socket, &opened, vaddrs, n);
}

/* The stack grows when it is used. */
static void allow_stack(void)
{
	const rlim_t wanted = DEMANGLE_STACK_BYTES + OWN_STACK_BYTES;
	struct rlimit limit;

	if (getrlimit(RLIMIT_STACK, &limit) != 0 || limit.rlim_cur >= wanted)
		return;
	limit.rlim_cur = limit.rlim_max < wanted ? limit.rlim_max : wanted;
	setrlimit(RLIMIT_STACK, &limit);
}

static __attribute__((noreturn)) void run_child(
    int socket, const struct symbol_file *file, const struct symbol_options *options)
{
	sigset_t none;

	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
	prctl(PR_SET_NAME, "heaptap-symbols");
	allow_stack();
	split_files_prepare();
	if (confinement_enter(
	        socket, file->fd, options->detail == SYMBOL_FULL ? FULL_SECONDS : FUNCTIONS_SECONDS) != 0)
		_exit(1);
	_exit(read_file(socket, file, options) == 0 ? 0 : 1);
}

/* ---- in the sampler */

static pid_t fork_patiently(void)
{
	const struct timespec pause = {.tv_nsec = 100 * 1000 * 1000};
	pid_t pid;

	for (int i = 0; (pid = fork()) < 0 && errno == EAGAIN && i < START_TRIES; i++)
		nanosleep(&pause, NULL);
	return pid;
}

int reader_start(struct reader *reader, const struct symbol_file *file, const struct symbol_options *options)
{
	const struct timeval look = {.tv_usec = LOOK_MS * 1000};
	int pair[2];

	*reader = (struct reader){.fd = -1, .file = file, .options = options};
	if (file->fd < 0)
		return -ENOEXEC;
	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) != 0)
		return -errno;
	reader->pid = fork_patiently();
	if (reader->pid == 0) {
		close(pair[0]);
		run_child(pair[1], file, options);
	}
	close(pair[1]);
	if (reader->pid < 0) {
		reader->pid = 0;
		close(pair[0]);
		return -EAGAIN;
	}
	reader->fd = pair[0];
	setsockopt(reader->fd, SOL_SOCKET, SO_RCVTIMEO, &look, sizeof(look));
	setsockopt(reader->fd, SOL_SOCKET, SO_SNDTIMEO, &look, sizeof(look));
	return 0;
}

/* The mode of a core file does not tell that it may hold secrets. */
static bool is_debug_file(int fd, const struct stat *status, const struct symbol_file *file)
{
	struct stat first;
	Elf64_Ehdr header;

	return pread(fd, &header, sizeof(header), 0) == (ssize_t)sizeof(header) &&
	    memcmp(header.e_ident, ELFMAG, SELFMAG) == 0 && header.e_type != ET_CORE &&
	    (regular_file_is_public(fd, status) ||
	        (fstat(file->fd, &first) == 0 && first.st_uid == status->st_uid));
}

static int serve_open(struct reader *reader, const char *path)
{
	struct stat status;
	int fd = regular_file_open(AT_FDCWD, path, 0, &status), err;

	if (fd >= 0 && !is_debug_file(fd, &status, reader->file)) {
		close(fd);
		fd = -ENOENT;
	}
	err = send_descriptor(reader->fd, fd < 0 ? fd : 0, fd);
	if (fd >= 0)
		close(fd);
	return err;
}

static int serve_fetch(struct reader *reader, const uint8_t *build_id, size_t build_id_bytes)
{
	int fd = reader->options->debuginfod ? debuginfod_open(build_id, build_id_bytes) : -ENOENT;
	int err = send_descriptor(reader->fd, fd < 0 ? fd : 0, fd);

	if (fd >= 0)
		close(fd);
	return err;
}

/* The header of the next message that does not ask for a file. Serves the messages before it, which do. */
static int next_message(struct reader *reader, struct header *header)
{
	for (int opens = 0; opens < OPENS_MAX; opens++) {
		char text[PATH_MAX];
		int err = receive_all(reader->fd, reader, header, sizeof(*header));

		if (err || (header->message != MESSAGE_OPEN && header->message != MESSAGE_FETCH))
			return err;
		if (header->bytes >= (header->message == MESSAGE_OPEN ? PATH_MAX : BUILD_ID_BYTES_MAX + 1))
			return -EPROTO;
		err = receive_all(reader->fd, reader, text, header->bytes);
		text[header->bytes] = '\0';
		if (!err && header->message == MESSAGE_OPEN)
			err = serve_open(reader, text);
		else if (!err)
			err = serve_fetch(reader, (const uint8_t *)text, header->bytes);
		if (err)
			return err;
	}
	return -EPROTO;
}

int reader_source(struct reader *reader, uint64_t *source_id, struct symbol_facts *facts)
{
	struct header header;
	struct source source;
	int err = next_message(reader, &header);

	if (err)
		return err;
	if (header.message != MESSAGE_SOURCE || header.bytes != sizeof(source))
		return -EPROTO;
	err = receive_all(reader->fd, reader, &source, sizeof(source));
	if (err)
		return err;
	*source_id = source.id;
	*facts = (struct symbol_facts){.debug_file = source.debug_file != 0};
	return source.error ? -ENOEXEC : 0;
}

int reader_answer(
    struct reader *reader, const uint64_t *vaddrs, size_t n, uint8_t **bytes, size_t *byte_count)
{
	const uint64_t count = n;
	struct header header;
	int err = send_all(reader->fd, reader, &count, sizeof(count));

	if (!err)
		err = send_all(reader->fd, reader, vaddrs, n * sizeof(*vaddrs));
	if (!err)
		err = next_message(reader, &header); /* the child may first ask for dwz's file */
	if (err)
		return err;
	if (header.message != MESSAGE_ANSWER || header.bytes > ANSWER_BYTES_MAX + n * ADDRESS_BYTES_MAX)
		return -EPROTO;
	*byte_count = header.bytes;
	*bytes = header.bytes ? malloc(header.bytes) : NULL;
	if (!*bytes)
		return -ENOMEM;
	err = receive_all(reader->fd, reader, *bytes, header.bytes);
	if (err)
		free(*bytes);
	return err;
}

void reader_end(struct reader *reader)
{
	if (reader->fd >= 0)
		close(reader->fd);
	if (reader->pid > 0) {
		kill(reader->pid, SIGKILL);
		while (waitpid(reader->pid, NULL, 0) < 0 && errno == EINTR)
			;
	}
	*reader = (struct reader){.fd = -1};
}
