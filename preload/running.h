/* SPDX-License-Identifier: Apache-2.0 */
/* The entries of libheaptap-attach.so; proto/region.h has their names, for the sampler. */
#ifndef PRELOAD_RUNNING_H
#define PRELOAD_RUNNING_H

#include "proto/attach_request.h"
#include "proto/region.h"

extern struct attach_request heaptap_attach_request;

/* Both keep errno and do nothing if there is nothing to do. */
void heaptap_attach(void);
void heaptap_detach(void);

#endif
