/* SPDX-License-Identifier: Apache-2.0 */
#include "sampler/core/control_client.h"

#include "pprof/text/clock.h"
#include "sampler/core/control_peer.h"
#include "sampler/core/control_socket.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

static void say_why(int error, const char *path, char *reason, size_t reason_bytes)
{
	switch (error) {
	case -ENOENT:
	case -ENOTDIR:
		snprintf(reason, reason_bytes, "no daemon runs: there is no %s", path);
		break;
	case -ECONNREFUSED:
		snprintf(reason, reason_bytes, "no daemon runs: %s is what one has left", path);
		break;
	case -EACCES:
		snprintf(reason, reason_bytes,
		    "you may not ask the daemon at %s: be root, or a member of the group heaptap", path);
		break;
	case -EPERM:
		snprintf(reason, reason_bytes, "%s is served by another user, who is not root", path);
		break;
	case -EAGAIN:
		snprintf(reason, reason_bytes, "the daemon at %s does not listen", path);
		break;
	default:
		snprintf(reason, reason_bytes, "%s: %s", path, strerror(-error));
	}
}

int control_client_connect(const char *socket, char *reason, size_t reason_bytes)
{
	char paths[CONTROL_PATHS][CONTROL_PATH_BYTES];
	bool chosen;
	int error = -ENAMETOOLONG;
	size_t count = control_path_candidates(socket, geteuid(), paths, &chosen);

	snprintf(reason, reason_bytes, "the path of the control socket is longer than %d bytes",
	    CONTROL_PATH_BYTES - 1);
	for (size_t i = 0; i < count; i++) {
		int fd = control_socket_connect(paths[i]);

		/* The server must run as root or as our user, unless the user has named the socket. */
		if (fd >= 0 && (chosen || control_peer_is_trusted(control_peer_user(fd))))
			return fd;
		error = fd < 0 ? fd : -EPERM;
		if (fd >= 0)
			close(fd);
		say_why(error, paths[i], reason, reason_bytes);
	}
	return error;
}

int control_client_send(int fd, const struct control_request *request)
{
	char text[CONTROL_REQUEST_BYTES];
	int length = control_request_format(request, text);

	if (length < 0)
		return length;
	if (send(fd, text, (size_t)length, MSG_NOSIGNAL) == length || errno == EPIPE || errno == ECONNRESET)
		return 0; /* it has hung up; its answer says why */
	return -errno;
}

/* The descriptor of a message, or -1. There is one at most: the kernel has closed the others. */
static int descriptor_of(struct msghdr *message)
{
	int fd = -1;

	for (struct cmsghdr *header = CMSG_FIRSTHDR(message); header; header = CMSG_NXTHDR(message, header))
		if (header->cmsg_level == SOL_SOCKET && header->cmsg_type == SCM_RIGHTS &&
		    header->cmsg_len == CMSG_LEN(sizeof(fd)))
			memcpy(&fd, CMSG_DATA(header), sizeof(fd));
	return fd;
}

/* Has the file the size that was announced, and can nobody change it any more? */
static bool is_sealed(int fd, uint64_t bytes)
{
	const int need = F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE;
	struct stat status;
	int seals = fcntl(fd, F_GET_SEALS);

	return seals >= 0 && (seals & need) == need && fstat(fd, &status) == 0 && S_ISREG(status.st_mode) &&
	    (uint64_t)status.st_size == bytes;
}

/* Receives a packet without waiting. Returns its length, 0 at the end of file, or -errno. */
static ssize_t receive_packet(int fd, char text[CONTROL_ANSWER_BYTES], int *profile_fd)
{
	union {
		struct cmsghdr header;
		char room[CMSG_SPACE(sizeof(int))];
	} ancillary;
	struct iovec bytes = {.iov_base = text, .iov_len = CONTROL_ANSWER_BYTES};
	struct msghdr message = {.msg_iov = &bytes, .msg_iovlen = 1, .msg_control = &ancillary};
	ssize_t got = -1;

	*profile_fd = -1;
	/* If the server has not read the request ("busy"), the first try gets a reset, and the second one
	 * the answer. */
	for (int try = 0; got < 0 && try < 3; try++) {
		message.msg_controllen =
		    CMSG_LEN(sizeof(int)); /* room for one, though the padding could hold another */
		got = recvmsg(fd, &message, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
		if (got < 0 && errno != ECONNRESET && errno != EINTR)
			return -errno;
	}
	if (got <= 0)
		return 0;
	*profile_fd = descriptor_of(&message);
	return got;
}

static int poll_once(int fd, int patience_ms)
{
	struct pollfd poll_fd = {.fd = fd, .events = POLLIN};
	uint64_t end_ns = clock_now_ns() + (uint64_t)patience_ms * CLOCK_NS_PER_MS;

	for (;;) {
		int ready = poll(&poll_fd, 1, patience_ms);

		if (ready >= 0)
			return ready ? 0 : -ETIMEDOUT;
		if (errno != EINTR)
			return -errno;
		uint64_t now_ns = clock_now_ns();
		patience_ms = now_ns < end_ns ? (int)((end_ns - now_ns) / CLOCK_NS_PER_MS) : 0;
	}
}

int control_client_receive(int fd, int patience_ms, struct control_answer *answer, int *profile_fd)
{
	char text[CONTROL_ANSWER_BYTES];
	int error = patience_ms ? poll_once(fd, patience_ms) : 0;

	*profile_fd = -1;
	if (error)
		return error;
	ssize_t got = receive_packet(fd, text, profile_fd);
	if (got <= 0)
		return (int)got;
	error = control_answer_parse(answer, text, (size_t)got);
	if (!error) {
		bool should = answer->kind == CONTROL_LISTED || answer->kind == CONTROL_PROFILED;

		if (should == (*profile_fd >= 0) && (!should || is_sealed(*profile_fd, answer->bytes)))
			return 1;
		error = -EPROTO;
	}
	if (*profile_fd >= 0)
		close(*profile_fd);
	*profile_fd = -1;
	return error;
}

int control_client_read(int profile_fd, uint64_t length, void **bytes)
{
	char *read_bytes = malloc(length + 1);
	int error = read_bytes ? 0 : -ENOMEM;

	for (uint64_t done = 0; done < length && !error;) {
		ssize_t got = pread(profile_fd, read_bytes + done, length - done, (off_t)done);

		if (got > 0)
			done += (uint64_t)got;
		else if (got == 0 || errno != EINTR)
			error = got == 0 ? -EPROTO : -errno;
	}
	close(profile_fd);
	if (error)
		free(read_bytes);
	else
		*bytes = read_bytes;
	return error;
}

/* Turns the first answer into 0 or -errno, and writes `reason` where it says more than the error. */
static int judge(int got, const struct control_answer *answer, char *reason, size_t reason_bytes)
{
	if (got == 0 || (got > 0 && answer->kind == CONTROL_UNSUPPORTED)) {
		snprintf(reason, reason_bytes,
		    "the daemon does not answer that: it is of another version, or may not be asked by you");
		return -EOPNOTSUPP;
	}
	if (got == -ETIMEDOUT)
		snprintf(reason, reason_bytes, "the daemon does not answer");
	else if (got < 0)
		snprintf(reason, reason_bytes, "the daemon's answer: %s", strerror(-got));
	if (got < 0)
		return got;
	if (answer->kind == CONTROL_BUSY) {
		snprintf(reason, reason_bytes, "too many others are asking the daemon; try again later");
		return -EBUSY;
	}
	if (answer->kind == CONTROL_OFF) {
		snprintf(reason, reason_bytes,
		    "everything is off (heaptap disable --now), so nothing is written: heaptap enable --now");
		return -ECANCELED;
	}
	if (answer->kind == CONTROL_UNKNOWN) {
		snprintf(reason, reason_bytes, "the daemon profiles no such process");
		return -ENOENT;
	}
	if (answer->kind == CONTROL_UNSAMPLED) {
		snprintf(
		    reason, reason_bytes, "profiled, but no sample has been taken yet: nothing is written");
		return -ENODATA;
	}
	return 0;
}

/* Sends the request and receives the first answer. 0, or -errno with a `reason`. The caller owns
 * *profile_fd. */
static int ask(int fd, const struct control_request *request, enum control_answer_kind expected,
    struct control_answer *answer, int *profile_fd, char *reason, size_t reason_bytes)
{
	*profile_fd = -1;
	int error = control_client_send(fd, request);
	if (error) {
		snprintf(reason, reason_bytes, "the daemon cannot be asked: %s", strerror(-error));
		return error;
	}
	int got = control_client_receive(fd, CONTROL_CLIENT_ANSWER_MS, answer, profile_fd);
	error = judge(got, answer, reason, reason_bytes);
	if (error || answer->kind == expected)
		return error;
	snprintf(reason, reason_bytes, "the daemon's answer: %s", strerror(EPROTO));
	return -EPROTO;
}

int control_client_list(const char *socket, struct control_list *list, char *reason, size_t reason_bytes)
{
	const struct control_request request = {.verb = CONTROL_LIST};
	struct control_answer answer;
	int fd = control_client_connect(socket, reason, reason_bytes), profile_fd;
	void *bytes;

	if (fd < 0)
		return fd;
	int error = ask(fd, &request, CONTROL_LISTED, &answer, &profile_fd, reason, reason_bytes);
	close(fd);
	if (error) {
		if (profile_fd >= 0)
			close(profile_fd);
		return error;
	}
	error = control_client_read(profile_fd, answer.bytes, &bytes);
	if (!error) {
		error = control_list_parse(list, bytes, answer.bytes);
		free(bytes);
	}
	if (error)
		snprintf(reason, reason_bytes, "the daemon's answer: %s", strerror(-error));
	return error;
}

static bool is_final(enum control_answer_kind kind)
{
	return kind == CONTROL_WRITTEN || kind == CONTROL_PROFILED || kind == CONTROL_GONE ||
	    kind == CONTROL_FAILED;
}

/* Receives *missing answers, one after the other. */
static int receive_each(int fd, int patience_ms,
    int (*visit)(void *context, const struct control_answer *answer, int profile_fd), void *context,
    uint32_t *missing, char *reason, size_t reason_bytes)
{
	struct control_answer answer;

	while (*missing) {
		int profile_fd, got = control_client_receive(fd, patience_ms, &answer, &profile_fd);

		if (got == 1 && !is_final(answer.kind)) {
			if (profile_fd >= 0)
				close(profile_fd);
			got = -EPROTO;
		}
		if (got != 1) {
			int error = got ? got : -ECONNRESET;

			snprintf(reason, reason_bytes, "the daemon has not answered for %u profile%s: %s",
			    *missing, *missing == 1 ? "" : "s", strerror(-error));
			return error;
		}
		--*missing;
		if (visit(context, &answer, profile_fd))
			return 0;
	}
	return 0;
}

int control_client_each(const char *socket, const struct control_request *request,
    int (*visit)(void *context, const struct control_answer *answer, int profile_fd), void *context,
    uint32_t *missing, char *reason, size_t reason_bytes)
{
	struct control_answer answer;
	int fd = control_client_connect(socket, reason, reason_bytes), profile_fd;

	*missing = 0;
	if (fd < 0)
		return fd;
	int error = ask(fd, request, CONTROL_ASKED, &answer, &profile_fd, reason, reason_bytes);
	if (profile_fd >= 0)
		close(profile_fd);
	if (!error) {
		*missing = answer.count;
		error = receive_each(fd, CONTROL_CLIENT_WRITE_MS + (int)request->duration_ms, visit, context,
		    missing, reason, reason_bytes);
	}
	close(fd);
	return error;
}
