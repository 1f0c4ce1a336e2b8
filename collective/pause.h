#ifndef ELASTOR_COLLECTIVE_PAUSE_H_
#define ELASTOR_COLLECTIVE_PAUSE_H_

#include "core/base/clock.h"

namespace elastor {

// Pauses a thread that waits for other ranks and has waited for so long, before it looks again. It
// first yields its core between looks, then naps for an eighth of the time waited so far: the nap
// lengthens a wait by an eighth at most, and ranks that share cores leave them to those that
// compute.
void PauseAfterWaiting(Clock::duration waited);

// Called by a thread that waits for other ranks while threads of its own rank compute, perhaps on
// the same core. It naps from the beginning, for a yield would give the other thread a whole turn
// of some milliseconds. It asks the kernel for short turns, so that it has its own at the end of a
// nap (Linux 6.12 or later; others do not know the wish).
void WaitBesideComputation();

}  // namespace elastor

#endif  // ELASTOR_COLLECTIVE_PAUSE_H_
