#include "coordinator/core/data/dataset_check.h"

#include <fmt/format.h>

#include <algorithm>
#include <memory>

#include "coordinator/core/data/copy_orders.h"

namespace tierpilot {

struct DatasetChecker::Round {
  DatasetCheck check;
  std::vector<bool> kept;  // of each node, before it was looked at
  bool repair = false;
  bool restoring = false;
  size_t open = 0;
  std::vector<Done> done;
};

void DatasetChecker::check(const std::string& name, bool repair, Done done) {
  if (state_.catalog.is_being_removed(name))
    return done(
        fail(ErrorCode::kConflict, fmt::format("dataset '{}' is just being removed", name)));
  const auto* entry = state_.catalog.find(name);
  if (!entry)
    return done(fail(ErrorCode::kNotFound, fmt::format("dataset '{}' does not exist", name)));
  const Asked asked{name, repair};
  if (const auto known = rounds_.find(asked); known != rounds_.end())
    return known->second->done.push_back(std::move(done));
  if (rounds_.size() >= kMost)
    return done(fail(ErrorCode::kExhausted,
                     fmt::format("{} datasets are being looked at: ask again later", kMost)));
  auto round = std::make_shared<Round>();
  rounds_[asked] = round;
  round->check.version = entry->dataset.current();
  round->repair = repair;
  round->done.push_back(std::move(done));
  for (const auto& [node, replica] : entry->replicas) {
    round->check.nodes.push_back({.node = node});
    round->kept.push_back(replica.home);
  }
  round->open = round->check.nodes.size() + 1;
  for (size_t i = 0; i < round->check.nodes.size(); ++i) {
    auto* node = state_.registry.find(round->check.nodes[i].node);
    if (!node || !node->can_be_asked()) {
      answered(round, i, fail(ErrorCode::kUnreachable, "it is not connected"));
      continue;
    }
    node->link->verify_dataset(round->check.version, [this, round, i](Result<CopyCheck> copies) {
      answered(round, i, std::move(copies));
    });
  }
  answered(round, round->check.nodes.size(), CopyCheck{});
}

void DatasetChecker::answered(const std::shared_ptr<Round>& round, size_t index,
                              Result<CopyCheck> copies) {
  if (index < round->check.nodes.size()) {
    auto& node = round->check.nodes[index];
    if (copies)
      node.copies = std::move(*copies);
    else
      node.error = copies.error().message;
  }
  if (--round->open > 0) return;
  if (round->repair) return restore(round);
  end(round);
}

void DatasetChecker::end(const std::shared_ptr<Round>& round) {
  rounds_.erase({round->check.version.dataset, round->repair});
  for (const auto& done : round->done) done(round->check);
}

void DatasetChecker::restore(const std::shared_ptr<Round>& round) {
  auto& nodes = round->check.nodes;
  const auto* entry = state_.catalog.find(round->check.version.dataset);
  const bool current = entry && entry->dataset.version == round->check.version.version &&
                       entry->dataset.digest == round->check.version.digest;
  round->open = 1;
  for (size_t i = 0; i < nodes.size(); ++i) {
    if (!current || !nodes[i].is_damaged() || !round->kept[i]) continue;
    auto* node = state_.registry.find(nodes[i].node);
    const auto need = need_of(state_, entry->dataset.current(), entry->replicas, nodes[i].node);
    if (need.sources.empty() && !nodes[i].is_good()) {
      nodes[i].error = "no other node that is up has a copy to restore it from";
      continue;
    }
    if (!node || !node->can_be_asked()) {
      nodes[i].error = "it is not connected";
      continue;
    }
    ++round->open;
    node->link->keep_dataset(need, [this, round, i](Status kept) {
      auto& told = round->check.nodes[i];
      told.restored = kept.has_value();
      if (!kept) told.error = kept.error().message;
      one_less(round);
    });
  }
  one_less(round);
}

void DatasetChecker::one_less(const std::shared_ptr<Round>& round) {
  if (--round->open == 0) end(round);
}

}  // namespace tierpilot
