// What is needed again last leaves first (Belady, A Study of Replacement Algorithms for a
// Virtual-Storage Computer, 1966), over the link where there is one. The least number of departures
// when all are of one size and cost; with sizes, recomputing and a busy link it is no bound.
#pragma once

#include "policies/swap/machine/machine.h"
#include "policies/swap/timetable.h"

namespace tierpilot::swap {

class BeladyEviction : public Manager {
 public:
  explicit BeladyEviction(const Timetable& timetable) : timetable_(timetable) {}
  bool make_room(Machine& machine, int64_t bytes) override;
  bool frees_unreferenced() const override { return true; }
  void before(Machine&, OperatorId op) override { now_ = op; }

 private:
  const Timetable& timetable_;
  Position now_ = 0;
};

}  // namespace tierpilot::swap
