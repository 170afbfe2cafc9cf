#include <algorithm>
#include <map>
#include <numeric>
#include <set>
#include <tuple>

#include "policies/sharing/predict/pairs/pair_law.h"

namespace tierpilot::sharing {
namespace {

constexpr size_t kMostFolds = 500;  // of pairs of models and cards

std::vector<size_t> range(size_t begin, size_t end) {
  std::vector<size_t> columns(end - begin);
  std::iota(columns.begin(), columns.end(), begin);
  return columns;
}

std::unique_ptr<Regressor> small_trees() {
  return make_boosted_trees({.trees = 100, .depth = 2, .rate = 0.05, .least_rows = 20});
}

std::vector<Contender> contenders(size_t columns) {
  const auto told = range(0, kPairColumns);
  const auto kinds = range(kLawColumn + 1, columns);
  auto all_but_law = told;
  all_but_law.insert(all_but_law.end(), kinds.begin(), kinds.end());
  const auto on_told = [told](std::unique_ptr<Regressor> regressor) {
    return make_on_columns(told, std::move(regressor));
  };
  std::vector<Contender> all{
      {"default", [] { return make_pair_law(kLawColumn); }},
      {"average",
       [on_told, all_but_law] {
         std::vector<std::unique_ptr<Regressor>> members;
         members.push_back(make_on_columns(all_but_law, make_ridge(0.1)));
         members.push_back(on_told(make_nearest(15)));
         members.push_back(on_told(small_trees()));
         return make_average(std::move(members));
       }},
      {"median", [] { return make_median(); }},
      {"mean", [] { return make_constant(); }},
      {"linear", [on_told] { return on_told(make_ridge(1e-6)); }},
      {"nearest-neighbour", [on_told] { return on_told(make_nearest(1)); }},
      {"boosted-trees", [on_told] { return on_told(make_boosted_trees({})); }}};
  if (!kinds.empty())
    all.push_back({"additive", [kinds] { return make_on_columns(kinds, make_ridge(0.02)); }});
  return all;
}

// Of so many groups each of that many is tested: those of all cards, as they are sorted by them.
size_t step_through(size_t groups) {
  return (groups + kMostFolds - 1) / kMostFolds;
}

}  // namespace

Split split_by_model(const PairData& data) {
  std::set<std::string> models;
  for (const auto& sample : data.samples) models.insert(sample.victim.model);
  Split split{"model", {}};
  const size_t step = step_through(models.size());
  size_t at = 0;
  for (const auto& model : models) {
    if (at++ % step != 0) continue;
    Fold fold{model, {}, {}};
    for (size_t i = 0; i < data.samples.size(); ++i) {
      const auto& sample = data.samples[i];
      const bool out = sample.victim.model == model || sample.neighbour.model == model;
      (out ? fold.test : fold.train).push_back(i);
    }
    if (!fold.train.empty()) split.folds.push_back(std::move(fold));
  }
  return split;
}

namespace {

Split by_card_and_models(const PairData& data) {
  std::map<std::tuple<std::string, std::string, std::string>, std::vector<size_t>> groups;
  for (size_t i = 0; i < data.samples.size(); ++i) {
    const auto& [card, victim, neighbour, _, __] = data.samples[i];
    const auto [a, b] = std::minmax(victim.model, neighbour.model);
    groups[{card, a, b}].push_back(i);
  }
  Split split{"card and models", {}};
  const size_t step = step_through(groups.size());
  size_t at = 0;
  for (const auto& [group, rows] : groups) {
    if (at++ % step != 0) continue;
    const auto& [card, a, b] = group;
    Fold fold{card + ": " + a + " and " + b, {}, rows};
    const auto known = [&a = a, &b = b](const std::string& model) {
      return model == a || model == b;
    };
    for (size_t i = 0; i < data.samples.size(); ++i) {
      const auto& sample = data.samples[i];
      if (sample.card != card && !known(sample.victim.model) && !known(sample.neighbour.model))
        fold.train.push_back(i);
    }
    if (!fold.train.empty()) split.folds.push_back(std::move(fold));
  }
  return split;
}

Study unsplit(const PairData& data) {
  Study study{.target = "retained speed", .rows = pair_rows(data)};
  for (const auto& sample : data.samples) study.targets.push_back(sample.retained);
  study.contenders = contenders(study.rows.front().size());
  study.goal = kRetainedGoal;
  return study;
}

std::vector<Study> with_beyond_half(const PairData& data, Study study) {
  auto studies = beyond_half_studies(data, study.splits);
  studies.insert(studies.begin(), std::move(study));
  return studies;
}

}  // namespace

std::vector<Study> pair_studies(const PairData& data) {
  Study study = unsplit(data);
  std::vector<std::string> cards;
  for (const auto& sample : data.samples) cards.push_back(sample.card);
  for (auto split : {by_card_and_models(data), leave_each_out("card", cards), split_by_model(data)})
    if (!split.folds.empty()) study.splits.push_back(std::move(split));
  return with_beyond_half(data, std::move(study));
}

std::vector<Study> pair_studies(const PairData& train, const PairData& data) {
  PairData all = train;
  all.samples.insert(all.samples.end(), data.samples.begin(), data.samples.end());
  Study study = unsplit(all);
  study.splits.push_back(
      {"files",
       {{"all", range(0, train.samples.size()), range(train.samples.size(), all.samples.size())}}});
  return with_beyond_half(all, std::move(study));
}

}  // namespace tierpilot::sharing
