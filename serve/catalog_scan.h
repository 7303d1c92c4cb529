/* SPDX-License-Identifier: Apache-2.0 */
/* The catalog's files: found by the broker, and each read once, by jobs. */
#ifndef SERVE_CATALOG_SCAN_H
#define SERVE_CATALOG_SCAN_H

#include "serve/broker_client.h"
#include "serve/catalog_file.h"
#include "serve/jobs.h"

struct catalog_scan;

/* finished() is called when a scan is over, or has taken as long as a request may wait for it: then the rest
 * is read by and by. NULL: no memory. */
struct catalog_scan *catalog_scan_new(
    struct broker_client *broker, struct jobs *jobs, void (*finished)(void *context), void *context);
void catalog_scan_free(struct catalog_scan *scan); /* after the jobs have ended */

/* Begins one. False: one is under way, or the broker has too much to do. */
bool catalog_scan_begin(struct catalog_scan *scan);

/* To be called about once a second. */
void catalog_scan_tend(struct catalog_scan *scan, uint64_t now_ns);

/* Forgets files that are not there any more: whoever calls refers to none of them. NULL is fine. */
void catalog_scan_drop_gone(struct catalog_scan *scan);

/* All files, by number; those not read yet, those that are no profile, and those that are gone too. */
size_t catalog_scan_files(const struct catalog_scan *scan, struct catalog_file *const **files);

#endif
