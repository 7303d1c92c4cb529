/* SPDX-License-Identifier: Apache-2.0 */
/* In two halves: whole it is on the stack of trust_secret alone, and wherever that was copied. */
#define TRUST_SECRET_BEGIN "known to "
#define TRUST_SECRET_END   "root alone"
