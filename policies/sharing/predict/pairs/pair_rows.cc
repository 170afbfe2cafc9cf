#include <algorithm>
#include <cmath>
#include <map>

#include "policies/sharing/predict/pairs/pair_law.h"

namespace tierpilot::sharing {
namespace {

// How the speed of a model changes with its batch on one card.
struct Profile {
  double most_samples_s = 0;
  double most_steps_s = 0;
  double least_steps_s = 0;
};
using Profiles = std::map<std::pair<std::string, std::string>, Profile>;

double samples_s(const PairJob& job) {
  return job.alone * std::max(job.batch, 1.0);
}

Profiles profiles_of(const PairData& data) {
  Profiles profiles;
  for (const auto& sample : data.samples)
    for (const auto* job : {&sample.victim, &sample.neighbour}) {
      auto& profile = profiles[{sample.card, job->model}];
      profile.most_samples_s = std::max(profile.most_samples_s, samples_s(*job));
      profile.most_steps_s = std::max(profile.most_steps_s, job->alone);
      profile.least_steps_s =
          profile.least_steps_s == 0 ? job->alone : std::min(profile.least_steps_s, job->alone);
    }
  return profiles;
}

void add(Row& row, const PairJob& job, const Profile& profile) {
  row.push_back(std::log(job.alone));
  // How far the batch fills the card: of the best throughput and the quickest step of this model.
  row.push_back(std::log(samples_s(job) / profile.most_samples_s));
  row.push_back(std::log(job.alone / profile.most_steps_s));
}

constexpr size_t kMostKinds = 128;  // of jobs, as columns

using Kinds = std::map<std::pair<std::string, double>, size_t>;

Kinds kinds_of(const PairData& data) {
  Kinds kinds;
  for (const auto& sample : data.samples)
    for (const auto* job : {&sample.victim, &sample.neighbour}) kinds[{job->model, job->batch}] = 0;
  if (kinds.size() > kMostKinds) kinds.clear();
  size_t number = 0;
  for (auto& [_, index] : kinds) index = number++;
  return kinds;
}

void add_kinds(Row& row, const PairSample& sample, const Kinds& kinds) {
  if (kinds.empty()) return;
  const size_t begin = row.size();
  row.resize(begin + 2 * kinds.size(), 0);
  row[begin + kinds.at({sample.victim.model, sample.victim.batch})] = 1;
  row[begin + kinds.size() + kinds.at({sample.neighbour.model, sample.neighbour.batch})] = 1;
}

}  // namespace

std::vector<Row> pair_rows(const PairData& data) {
  const auto profiles = profiles_of(data);
  const auto kinds = kinds_of(data);
  const GpuParts parts(data);
  std::vector<Row> rows;
  for (const auto& sample : data.samples) {
    Row row;
    add(row, sample.victim, profiles.at({sample.card, sample.victim.model}));
    add(row, sample.neighbour, profiles.at({sample.card, sample.neighbour.model}));
    // Who has the longer kernels keeps more: units are handed over between kernels.
    const double ratio = std::log(sample.victim.alone / sample.neighbour.alone);
    row.push_back(ratio);
    row.push_back(std::tanh(ratio / 2));
    row.push_back(row[1] - row[4]);
    row.push_back(sample.victim.model == sample.neighbour.model ? 1 : 0);
    row.push_back(ln_longer(sample, parts));
    add_kinds(row, sample, kinds);
    rows.push_back(std::move(row));
  }
  return rows;
}

}  // namespace tierpilot::sharing
