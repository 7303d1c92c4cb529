/* SPDX-License-Identifier: Apache-2.0 */
/*
 * OpenTelemetry's profiles over HTTP, POST /v1development/profiles. Experimental: the format is in
 * development and has changed between versions; this is the one of opentelemetry-proto v1.11.0.
 */
#ifndef PUSH_OTLP_H
#define PUSH_OTLP_H

#include "push/protocol.h"

extern const struct protocol otlp_protocol;

#endif
