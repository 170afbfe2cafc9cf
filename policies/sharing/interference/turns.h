// What jobs keep beside each other on one GPU that they take in turn, from the part of a step that
// each spends on the GPU alone, the rest being its host's. Two jobs wait for each other as
// customers of a closed queueing network do: who arrives finds the other there as often as it is
// there alone (Reiser and Lavenberg, Mean-Value Analysis of Closed Multichain Queuing Networks,
// JACM 27(2), 1980). Two laws, by where they meet.
#pragma once

namespace tierpilot::sharing {

// Hosts of their own: they meet at the GPU only, and a step takes (u_a u_b)^(3/4) longer, whatever
// the lengths of kernels. The root was chosen on 37 pairs on an H100 (0.076 mean absolute error of
// what is kept; without it 0.089) and tested on 30 others on an H200 (0.062; 0.071; their median is
// 0.106 off), whose jobs had cores of their own and took turns by the driver's time slices.
// ln of what a job keeps, the same for both: at least half. Parts are taken for 0 to 1.
double ln_kept_on_own_hosts(double victim_part, double neighbour_part);

// Of a job alone.
struct TakesTurns {
  double part = 0;    // of a step that is spent on the GPU, above 0 to 1
  double step_s = 0;  // 0: not known, and neither job's length of kernels counts
};

// A host that both wait for, too: a step takes u_a u_b + (1 - u_a) (1 - u_b) longer. Units are
// handed over between kernels, so who has the longer ones waits for less: by the fourth root of the
// ratio of the times on the GPU. Found on published pairs on a K80 and a P100 alike
// (predict/pairs/pair_law.h); where jobs have hosts of their own it is 0.2 to 0.3 off.
// ln of how much longer a step of the victim takes, of the step alone. `alike`: by how much both
// are on the GPU, and at the host, at once more often than their parts say.
double ln_longer_on_shared_host(const TakesTurns& victim, const TakesTurns& neighbour,
                                double alike = 0);
// ln of what is kept.
double ln_kept_on_shared_host(const TakesTurns& victim, const TakesTurns& neighbour);

// Half of the speed is counted to the share of a job, and nobody keeps more than all beyond it. Of
// what is kept the mean of that logarithm, where `ln_kept` is only its middle and the standard
// deviation about it `off`, above 0.
double ln_kept_beyond_half(double ln_kept, double off);

}  // namespace tierpilot::sharing
