/* SPDX-License-Identifier: Apache-2.0 */
/* How much heaptap-push says on stderr. Set once, by the command line. */
#ifndef PUSH_VERBOSITY_H
#define PUSH_VERBOSITY_H

/* -1: only what went wrong; 0; 1: what is done, too. */
extern int verbosity;

#endif
