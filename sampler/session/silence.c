/* SPDX-License-Identifier: Apache-2.0 */
#include "sampler/session/silence.h"

#define TOLD_NS UINT64_C(4000000000)  /* beside a load of many programs a second may become two */
#define MOST_NS UINT64_C(60000000000) /* of which one look at many processes takes a few seconds */
#define LOOK_NS UINT64_C(2000000000)  /* at most between two looks, unless the front could not run either */

void silence_end(struct silence *silence, uint64_t now_ns)
{
	*silence = (struct silence){.looked_ns = now_ns};
}

enum silence_verdict silence_look(struct silence *silence, uint64_t now_ns)
{
	const uint64_t since_ns = now_ns - silence->looked_ns;

	silence->looked_ns = now_ns;
	silence->silent_ns += since_ns < LOOK_NS ? since_ns : LOOK_NS;
	if (silence->silent_ns >= MOST_NS)
		return SILENCE_TOO_LONG;
	if (silence->silent_ns < TOLD_NS || silence->silent_ns < 2 * silence->told_ns)
		return SILENCE_SHORT;
	silence->told_ns = silence->silent_ns;
	return SILENCE_TO_TELL;
}
