/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Does a call instruction end at an address? A return address has a call in front of it; most other words of
 * a stack do not. Pure.
 *
 * Encodings: Intel SDM volume 2, CALL, and section 2.1.5 (ModR/M and SIB bytes); Arm Architecture Reference
 * Manual for A-profile, C6.2, BL, BLR and BLRAA.
 */
#ifndef SAMPLER_UNWIND_CALL_H
#define SAMPLER_UNWIND_CALL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { CALL_BYTES_MAX = 7 }; /* longest call without prefixes: opcode, ModR/M, SIB, 32 bits of displacement */

/*
 * `code`: the bytes in front of `address`, the last of them at address - 1; fewer than CALL_BYTES_MAX where
 * the code begins. *target: the address that a direct call calls. 0 for a call through a register or memory,
 * and for bytes that can be read as either kind. An unknown architecture has no calls.
 */
bool call_ends_at(uint16_t e_machine, const uint8_t *code, size_t bytes, uint64_t address, uint64_t *target);

#endif
