/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Parca: a unary call of gRPC, parca.profilestore.v1alpha1.ProfileStoreService/WriteRaw, as a POST of
 * HTTP/2 whose answer's status is in the trailers (gRPC over HTTP2). HTTP's own status is 200 even for a
 * refusal.
 */
#ifndef PUSH_PARCA_H
#define PUSH_PARCA_H

#include "push/protocol.h"

extern const struct protocol parca_protocol;

#endif
