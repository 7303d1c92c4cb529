/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The messages between the front process and the sampler, over a SOCK_SEQPACKET socket pair: one message is
 * one packet of exactly sizeof(struct front_message) bytes. Both ends are forks of the same process, so the
 * messages need no version.
 *
 *     sampler                              front
 *        | -- READY (HEAPTAP's value) ------> |     or FAILED (why): COMMAND is not profiled
 *        | <-- STARTED (pid) ---------------- |     sent before COMMAND's exec: no message of COMMAND
 *        |                                    |     can come before
 *        | -- ATTACHED or FAILED (why) -----> |     only with events: their counters are on COMMAND
 *        | <-- CANCELLED (pid) -------------- |     the exec failed: the sampler ends
 *        | <-- ENDED (pid, wait status) ----- |     COMMAND was reaped
 *        | -- ALIVE ------------------------> |     once a second from then on, if the front reads
 *        | -- DONE -------------------------> |     the profiles of all ended processes are on disk
 *
 * End of file means that the other side is gone. If the front dies before STARTED, the sampler ends. If it
 * dies later, the sampler goes on for as long as a profiled process lives. Each side trusts the other.
 */
#ifndef SAMPLER_CMD_RECORD_FRONT_MESSAGE_H
#define SAMPLER_CMD_RECORD_FRONT_MESSAGE_H

#include <stdint.h>

enum front_message_kind {
	FRONT_MESSAGE_READY = 1,
	FRONT_MESSAGE_FAILED,
	FRONT_MESSAGE_DONE,
	FRONT_MESSAGE_STARTED,
	FRONT_MESSAGE_CANCELLED,
	FRONT_MESSAGE_ENDED,
	FRONT_MESSAGE_ATTACHED,
	FRONT_MESSAGE_ALIVE,
};

#define FRONT_MESSAGE_TEXT_BYTES 1024

struct front_message {
	uint32_t kind;
	int32_t pid; /* STARTED, CANCELLED, ENDED */
	/* ENDED: as wait(2) gives it, or -1 if it is not known. READY: why there is no control socket,
	 * as -errno, or 0. */
	int32_t status;
	/* READY: value of HEAPTAP for COMMAND, "none" without a heap; FAILED: one line without a newline */
	char text[FRONT_MESSAGE_TEXT_BYTES];
};

/* Sends one message. text may be NULL, and is cut to fit. Never raises SIGPIPE. ALIVE is not sent while an
 * earlier message is unread: the front may be stopped, and the socket must have room for DONE. Returns 0
 * or -errno. -EAGAIN: a non-blocking descriptor has no room, send it again later. */
int front_message_write(int fd, enum front_message_kind kind, int32_t pid, int32_t status, const char *text);

/* Receives one message, with a NUL at the end of text. Returns 0, -EPIPE at end of file, -EPROTO for a
 * malformed packet, or -errno. -EAGAIN: a non-blocking descriptor has nothing to read. */
int front_message_read(int fd, struct front_message *message);

#endif
