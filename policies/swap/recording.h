// Hears what another manager does, and makes a plan of it: whatever policy found it, a planner can
// start from it.
#pragma once

#include <utility>

#include "policies/swap/machine/machine.h"
#include "policies/swap/plan.h"

namespace tierpilot::swap {

class Recording : public Manager {
 public:
  Recording(const Graph& graph, Manager& manager)
      : manager_(manager), used_at_(graph.storages.size()), away_(graph.storages.size()) {}

  bool make_room(Machine& machine, int64_t bytes) override {
    return manager_.make_room(machine, bytes);
  }
  bool frees_unreferenced() const override { return manager_.frees_unreferenced(); }
  void unlocked(Machine& machine, StorageId storage) override {
    used_at_[storage] = now_;
    manager_.unlocked(machine, storage);
  }
  void after(Machine& machine, OperatorId op) override { manager_.after(machine, op); }
  void before(Machine& machine, OperatorId op) override {
    now_ = op;
    manager_.before(machine, op);
  }
  void left(Machine& machine, StorageId storage) override {
    away_[storage] = true;
    manager_.left(machine, storage);
  }
  void arrived(Machine& machine, StorageId storage) override {
    const auto from = std::exchange(used_at_[storage], now_);
    if (std::exchange(away_[storage], false) && from < now_)
      absences_.push_back(
          {storage, {from, now_, machine.has_copy(storage) ? Action::kSwap : Action::kRecompute}});
    manager_.arrived(machine, storage);
  }

  // What left and came back, from its last use on.
  Plan plan() const {
    Plan plan{.absences = std::vector<std::vector<Absence>>(used_at_.size())};
    for (const auto& [storage, absence] : absences_) plan.absences[storage].push_back(absence);
    return plan;
  }

 private:
  Manager& manager_;
  std::vector<std::pair<StorageId, Absence>> absences_;
  std::vector<Position> used_at_;
  std::vector<char> away_;
  Position now_ = 0;
};

}  // namespace tierpilot::swap
