// Speeds of two jobs that share a unit (s3_gavel_pairs.csv and files like it): what part of its
// speed alone each keeps.
#pragma once

#include <filesystem>

#include "base/result.h"
#include "base/table/csv_table.h"
#include "policies/sharing/predict/study.h"

namespace tierpilot::sharing {

struct PairJob {
  std::string model;
  double batch = 0;  // 0: not told
  double alone = 0;  // steps per second; of pairs on cores, per second of CPU time
  // Alone, as far as it is told; 0: it is not.
  double milli = 0, memory_bytes = 0, traffic_bytes_s = 0;
  double traced_milli = 0;  // of a GPU, by its kernels, where `milli` is its driver's
};

// One direction of a pair: the victim's speed beside the neighbour.
struct PairSample {
  std::string card;
  PairJob victim, neighbour;
  double retained = 0;  // of the victim's speed alone
  double noise = 0;     // standard deviation of its logarithm, by measuring; 0: not told
};

struct PairData {
  std::vector<PairSample> samples;
  uint64_t do_not_fit = 0;  // pairs, with a speed of 0; they are no samples
  uint64_t skipped = 0;     // rows
  std::string first_skipped;
};

// Columns gpu, model_a, batch_a, model_b, batch_b, alone_a, alone_b, together_a, together_b.
bool is_pair_table(const CsvTable& table);
Result<PairData> read_pairs(CsvTable& table);

// Speeds alone of the two jobs and how they change with the batch, from all of `data` on that card;
// behind these `kPairColumns` columns what the law of pairs says (pair_law.h), and behind that one
// for each kind of job (model and batch) as victim and as neighbour, where there are at most some
// hundred.
inline constexpr size_t kPairColumns = 10;
inline constexpr size_t kLawColumn = kPairColumns;
std::vector<Row> pair_rows(const PairData& data);

inline constexpr double kRetainedGoal = 0.07;  // mean absolute error of the part that is kept

// Each model alone is tested, in whichever place.
Split split_by_model(const PairData& data);
// What is kept of the speed alone, and what live jobs would be thought to keep beyond half of it.
// Split by card, by model, and by both at once: of a pair to be tested neither the card nor one of
// the models is in the training part.
std::vector<Study> pair_studies(const PairData& data);
// Trained on all of `train`, tested on all of `data`.
std::vector<Study> pair_studies(const PairData& train, const PairData& data);

// Whether each job tells what part of the time it uses alone.
bool tell_milli(const PairData& data);
// Of pairs on GPUs that tell it: the law of jobs on hosts of their own (interference/turns.h) with
// the use that was measured, as of live jobs, against what is kept of the speed alone and beyond
// half of it; beside it the same with the use that kernels tell, where all jobs have it, and the
// law of a shared host. Nothing of them is fitted. Over all rows, where mean and median are of the
// same rows, and by model.
std::vector<Study> measured_use_studies(const PairData& data);

// Half is counted to its share: 1 where half or more is kept.
double kept_beyond_half(const PairSample& sample);
// By the prior of live jobs on GPUs, and beside it by the law of a shared host: the mean absolute
// error, and the root mean square of the logarithm's. The part of the time on the GPU is what all
// jobs tell of it, else what it is as far as speeds alone tell.
std::vector<Study> beyond_half_studies(const PairData& data, const std::vector<Split>& splits);

}  // namespace tierpilot::sharing
