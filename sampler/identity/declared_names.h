/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a process says of itself: in its environment, and in the memory that OpenTelemetry SDKs publish for
 * readers outside (process context, OTEP 4719, version 2 of its header). Pure parsers over bytes; all of
 * them are hostile.
 */
#ifndef SAMPLER_IDENTITY_DECLARED_NAMES_H
#define SAMPLER_IDENTITY_DECLARED_NAMES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { DECLARED_NAME_BYTES = 256, DECLARED_CONTEXT_BYTES_MAX = 64 << 10, DECLARED_CONTEXT_HEADER_BYTES = 32 };

/* Valid UTF-8, cut; "": not said. */
struct declared_names {
	char service[DECLARED_NAME_BYTES]; /* OTEL_SERVICE_NAME, OTEL_RESOURCE_ATTRIBUTES, DD_SERVICE */
	char context_service[DECLARED_NAME_BYTES]; /* service.name of the process context */
	char environment[DECLARED_NAME_BYTES];     /* deployment.environment.name, of either */
	char version[DECLARED_NAME_BYTES];         /* service.version, of either */
	char namespace[DECLARED_NAME_BYTES], pod[DECLARED_NAME_BYTES],
	    container[DECLARED_NAME_BYTES]; /* of Kubernetes */
	bool disabled;                      /* HEAPTAP_DISABLE=1 */
};

/* The bytes of /proc/PID/environ, whole or cut. */
void declared_names_of_environment(struct declared_names *names, const void *bytes, size_t length);

/* Does a line of /proc/PID/maps name such memory? Its first address then. */
bool declared_names_is_context(const char *line, uint64_t *address);

struct declared_context {
	uint64_t published_ns; /* 0: it is being written */
	uint64_t payload;      /* address */
	uint32_t payload_bytes;
};

/* The DECLARED_CONTEXT_HEADER_BYTES bytes there; false: none that we know. */
bool declared_names_context_header(const void *bytes, size_t length, struct declared_context *context);

/* The payload: a Resource, or a ProcessContext with one (both are in use). What cannot be decoded is passed
 * over. */
void declared_names_of_context(struct declared_names *names, const void *bytes, size_t length);

#endif
