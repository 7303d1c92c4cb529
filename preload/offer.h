/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The offer: a program run that has found no session makes a region itself, so that a daemon can find it
 * in its address space at any time later (proto/region.h). Nobody is waited for, no descriptor stays open,
 * and the only page touched is the header's.
 */
#ifndef PRELOAD_OFFER_H
#define PRELOAD_OFFER_H

#include "proto/region.h"

#include <stdbool.h>

/* A region with its header written, mode off, not to be unmapped; strict: by such system calls alone as the
 * loader makes too. NULL: there is no room for it. */
struct region_header *offer_region(bool strict);

#endif
