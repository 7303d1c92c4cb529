/* SPDX-License-Identifier: Apache-2.0 */
/* The vector state of a thread, from ptrace's form to that in a signal frame (arch/x86/include/uapi/asm/
 * sigcontext.h): the same XSAVE area, with a description in its unused bytes and a mark at its end. */
#ifndef SAMPLER_ATTACH_VECTOR_STATE_H
#define SAMPLER_ATTACH_VECTOR_STATE_H

#include <stddef.h>

enum { VECTOR_STATE_MARK_BYTES = 4 };

/* `area`: what PTRACE_GETREGSET gives for NT_X86_XSTATE; `frame`: room for as much and the mark. Returns the
 * bytes of the frame; 0: the thread uses state (AMX tiles) that would not come back. */
size_t vector_state_frame(const unsigned char *area, size_t bytes, unsigned char *frame);

#endif
