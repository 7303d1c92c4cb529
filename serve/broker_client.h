/* SPDX-License-Identifier: Apache-2.0 */
/* The web process' side of the broker: asks, and calls back when a reply has come. */
#ifndef SERVE_BROKER_CLIENT_H
#define SERVE_BROKER_CLIENT_H

#include "serve/broker_message.h"

#include <stdbool.h>

enum {
	BROKER_CLIENT_WAITING_MAX = 1024,
	/* A sampler has room for 16 clients (CONTROL_SERVER_CLIENTS), and others may ask it too. */
	BROKER_CLIENT_PROFILES_AT_ONCE = 6,
	BROKER_CLIENT_CPU_AT_ONCE = 8,
	BROKER_CLIENT_FILES_AT_ONCE = 64, /* each a descriptor on its way */
};

struct broker_client;

/* fd: the callee's; -1 where there is none. After a reply with `last` nothing more comes. */
typedef void broker_client_got(void *context, const struct broker_reply *reply, int fd);

struct broker_client *broker_client_new(int fd); /* takes over fd; NULL: no memory */
void broker_client_free(struct broker_client *client);
int broker_client_fd(const struct broker_client *client);

/*
 * Asks. A profile or snapshot waits for its turn where its sampler makes others already, a file where many
 * are being opened; time on a CPU is what happens from now on, and cannot wait. Returns the number of the
 * request (its id is filled in), or 0: too many wait; then nobody is called.
 */
uint64_t broker_client_ask(struct broker_client *client, const struct broker_request *request,
    broker_client_got *got, void *context);

/* Nobody is called any more for that request, and who answers it is told. */
void broker_client_cancel(struct broker_client *client, uint64_t id);

/* Reads what has come. False: the broker has ended. */
bool broker_client_event(struct broker_client *client);

#endif
