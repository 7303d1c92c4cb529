/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Datadog's agent: a form with an event and the profile, to /profiling/v1/input on the agent's port
 * (libdd-profiling/src/exporter of DataDog/libdatadog).
 */
#ifndef PUSH_DATADOG_H
#define PUSH_DATADOG_H

#include "push/protocol.h"

extern const struct protocol datadog_protocol;

#endif
