/* SPDX-License-Identifier: Apache-2.0 */
#include "sampler/attach/attacher.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

struct result {
	int error;
	struct attachment attachment;
};

static void run_child(int fd, int (*run)(struct attachment *attachment, const struct attachment_wish *wish),
    const struct attachment_wish *given)
{
	struct attachment_wish wish = *given;
	struct result result;
	prctl(PR_SET_NAME, "heaptap-attach");
	wish.cancel_fd = fd;
	result.error = run(&result.attachment, &wish);
	if (send(fd, &result, sizeof(result), MSG_NOSIGNAL) != (ssize_t)sizeof(result) && !result.error &&
	    run == attachment_begin) {
		wish.cancel_fd = -1;
		(void)attachment_end(&result.attachment, &wish); /* there is no sampler any more */
	}
	_exit(EXIT_SUCCESS);
}

int attacher_start(struct attacher *attacher,
    int (*run)(struct attachment *attachment, const struct attachment_wish *wish),
    const struct attachment_wish *wish)
{
	int pair[2];
	*attacher = (struct attacher){.fd = -1};
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) != 0)
		return -errno;
	attacher->child = fork();
	if (attacher->child == 0) {
		close(pair[0]);
		run_child(pair[1], run, wish);
	}
	int error = attacher->child < 0 ? -errno : 0;
	close(pair[1]);
	if (error)
		close(pair[0]);
	else
		attacher->fd = pair[0];
	return error;
}

void attacher_give_up(const struct attacher *attacher)
{
	(void)shutdown(attacher->fd, SHUT_WR); /* as our death would look to it */
}

int attacher_finish(struct attacher *attacher, struct attachment *attachment)
{
	struct result result = {.error = -EIO};
	ssize_t got;
	do
		got = recv(attacher->fd, &result, sizeof(result), 0);
	while (got < 0 && (errno == EINTR || errno == ECONNRESET)); /* it has not read that it was given up */
	if (got != (ssize_t)sizeof(result)) {
		result = (struct result){.error = -EIO};
		snprintf(result.attachment.reason, sizeof(result.attachment.reason),
		    "the attaching process has ended before its time");
	}
	*attachment = result.attachment;
	close(attacher->fd);
	while (waitpid(attacher->child, NULL, 0) < 0 && errno == EINTR)
		;
	*attacher = (struct attacher){.fd = -1};
	return result.error;
}
