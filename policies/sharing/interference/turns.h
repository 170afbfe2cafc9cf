// What jobs keep beside each other on one GPU that they take in turn, from what is known of each
// alone.
//
// Two jobs that wait for each other at the GPU and at the host, as customers of a closed queueing
// network do: who arrives finds the other there as often as it is there alone (Reiser and
// Lavenberg, Mean-Value Analysis of Closed Multichain Queuing Networks, JACM 27(2), 1980). With the
// part u of a step on the GPU, a step takes u_a u_b + (1 - u_a) (1 - u_b) longer. Units are handed
// over between kernels, so who has the longer ones waits for less: by the fourth root of the ratio
// of the times on the GPU, which was found on a K80 and on a P100 alike.
#pragma once

namespace tierpilot::sharing {

// Of a job alone.
struct TakesTurns {
  double part = 0;    // of a step that is spent on the GPU, 0 to 1
  double step_s = 0;  // 0: not known, and neither job's length of kernels counts
};

// ln of how much longer a step of the victim takes, of the step alone. `alike`: by how much both
// are on the GPU, and at the host, at once more often than their parts say.
double ln_longer(const TakesTurns& victim, const TakesTurns& neighbour, double alike = 0);

// ln of what is kept.
double ln_kept_in_turns(const TakesTurns& victim, const TakesTurns& neighbour);

}  // namespace tierpilot::sharing
