/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Grafana Pyroscope: Connect's unary push.v1.PusherService/Push with protobuf bodies, or, where the server
 * answers 404 to that, /ingest (pkg/distributor and pkg/ingester/pyroscope of grafana/pyroscope).
 *
 * Pyroscope adds up alloc_* over time: they are sent as differences, and `__delta__=false` tells the
 * storage of version 1 not to subtract again.
 */
#ifndef PUSH_PYROSCOPE_H
#define PUSH_PYROSCOPE_H

#include "push/protocol.h"

extern const struct protocol pyroscope_protocol;

#endif
