/* SPDX-License-Identifier: Apache-2.0 */
/* The web process' side of the broker: asks, and calls back when a reply comes. */
#ifndef SERVE_BROKER_CLIENT_H
#define SERVE_BROKER_CLIENT_H

#include "serve/broker.h"

#include <stdbool.h>

enum {
	BROKER_CLIENT_WAITING_MAX = 1024,
	/* A sampler has room for 16 clients (CONTROL_SERVER_CLIENTS), and others may ask it too. */
	BROKER_CLIENT_PROFILES_AT_ONCE = 6,
	BROKER_CLIENT_CPU_AT_ONCE = 8,
	BROKER_CLIENT_FILES_AT_ONCE = 64, /* each is a descriptor on its way */
};

struct broker_client;

/* fd: the callee's to close; -1 if there is none. No reply follows a reply with `last`. */
typedef void broker_client_got(void *context, const struct broker_reply *reply, int fd);

struct broker_client *broker_client_new(int fd); /* takes over fd; NULL: no memory */
void broker_client_free(struct broker_client *client);
int broker_client_fd(const struct broker_client *client);

/*
 * Asks. A profile or a snapshot waits for its turn if its sampler makes too many already. A file waits if too
 * many are being opened. CPU time cannot wait, since it is what happens from now on. Returns the number of
 * the question (its id is filled in). Returns 0 if too many wait; then got() is not called.
 */
uint64_t broker_client_ask(struct broker_client *client, const struct broker_question *question,
    broker_client_got *got, void *context);

/* got() is not called any more for that question, and the broker is told. */
void broker_client_cancel(struct broker_client *client, uint64_t id);

/* Reads the replies that have come. False: the broker has ended. */
bool broker_client_event(struct broker_client *client);

#endif
