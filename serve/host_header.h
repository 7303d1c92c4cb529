/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Whether a request's Host header may come here: against DNS rebinding, where a foreign page lets its
 * own name
 * lead to 127.0.0.1 and so reads, in the browser of somebody who looks at that page, what listens there.
 *
 * Such a page's requests have its name in Host. So where no token is needed only addresses and localhost are
 * answered, and names that mean this machine to nobody else.
 */
#ifndef SERVE_HOST_HEADER_H
#define SERVE_HOST_HEADER_H

#include <stdbool.h>

/* Pure. host: NULL if there is no header (HTTP/1.0). own_name: this machine's, NULL or "": none. */
bool host_header_is_local(const char *host, const char *own_name);

#endif
