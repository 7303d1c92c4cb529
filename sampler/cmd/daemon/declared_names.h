/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The names that a process declares: in its environment, and in the memory that OpenTelemetry SDKs publish
 * for other processes (process context, OTEP 4719, version 2 of its header). Pure parsers; all bytes are
 * hostile.
 */
#ifndef SAMPLER_CMD_DAEMON_DECLARED_NAMES_H
#define SAMPLER_CMD_DAEMON_DECLARED_NAMES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { DECLARED_NAME_BYTES = 256, DECLARED_CONTEXT_BYTES_MAX = 64 << 10, DECLARED_CONTEXT_HEADER_BYTES = 32 };

/* Valid UTF-8, cut to fit; "": not declared. */
struct declared_names {
	char service[DECLARED_NAME_BYTES]; /* OTEL_SERVICE_NAME, OTEL_RESOURCE_ATTRIBUTES, DD_SERVICE */
	char context_service[DECLARED_NAME_BYTES]; /* service.name of the process context */
	char environment[DECLARED_NAME_BYTES];     /* deployment.environment.name, from either source */
	char version[DECLARED_NAME_BYTES];         /* service.version, from either source */
	char namespace[DECLARED_NAME_BYTES], pod[DECLARED_NAME_BYTES],
	    container[DECLARED_NAME_BYTES]; /* of Kubernetes */
	bool disabled;                      /* HEAPTAP_DISABLE=1 */
};

/* Parses the bytes of /proc/PID/environ, whole or cut. */
void declared_names_of_environment(struct declared_names *names, const void *bytes, size_t length);

/* Does a line of /proc/PID/maps name a process context? Then *address is its first address. */
bool declared_names_is_context(const char *line, uint64_t *address);

struct declared_context {
	uint64_t published_ns; /* 0: the process is writing it just now */
	uint64_t payload;      /* address */
	uint32_t payload_bytes;
};

/* Parses the DECLARED_CONTEXT_HEADER_BYTES bytes at that address. False if it is no header that we know. */
bool declared_names_context_header(const void *bytes, size_t length, struct declared_context *context);

/* Parses the payload: a Resource, or a ProcessContext with a Resource (both are in use). Passes over what
 * it cannot decode. */
void declared_names_of_context(struct declared_names *names, const void *bytes, size_t length);

#endif
