// Time in service, cut into pieces in which no factor of the failure rate changes.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "policies/gang/rates/history.h"

namespace tierpilot::gang {

// What a failure rate is a product of; each piece has one of its levels, or an unknown one.
struct Factor {
  std::string name;
  uint32_t levels = 0;
  std::vector<int32_t> of_piece;
  bool ordered = false;  // a level that was never seen is taken as the nearest below it
};

struct PieceSettings {
  double half_life_days = 0;   // after which a day counts half; 0: all days count alike
  double cluster_days = 0;     // a failure of a unit so soon after another one belongs to that one
  bool since_failure = false;  // the time since a unit's last failure is a factor
  bool pairs = false;          // so are pairs of groups
  int32_t kind = -1;           // only failures of this kind; -1: of all
};

struct Pieces {
  std::vector<uint32_t> unit;
  std::vector<double> exposure_days;
  std::vector<double> failures;
  std::vector<Factor> factors;  // without node and unit
  Factor node;                  // empty levels: there are none
  double cluster_size = 1;      // failures for each that began a cluster

  size_t size() const { return unit.size(); }
};

// All until `at_day`: failures and days count as `settings` says.
Pieces observed_pieces(const FailureHistory& history, const PieceSettings& settings, double at_day);

// As it will be from `at_day` for `horizon_days`, if nothing fails, for each unit that is in
// service then; days count fully, and factors are those of `observed_pieces`.
Pieces coming_pieces(const FailureHistory& history, const PieceSettings& settings, double at_day,
                     double horizon_days);

}  // namespace tierpilot::gang
