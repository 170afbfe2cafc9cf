#include "policies/sim/sharing/full_load/restricted_master.h"

#include <algorithm>
#include <limits>
#include <numeric>

namespace tierpilot::sharing {
namespace {

constexpr double kNothing = 1e-9;
constexpr size_t kLeft = std::numeric_limits<size_t>::max();  // the number of what is left of a row

}  // namespace

RestrictedMaster::RestrictedMaster(size_t rows)
    : size_(rows + 1),
      inverse_(size_ * size_, 0),
      parts_(size_, 1),
      worths_(size_, 0),
      numbers_(size_, kLeft) {
  for (size_t i = 0; i < size_; ++i) inverse(i, i) = 1;
}

double RestrictedMaster::value() const {
  return std::inner_product(parts_.begin(), parts_.end(), worths_.begin(), 0.0);
}

std::vector<double> RestrictedMaster::duals() const {
  std::vector<double> duals(size_, 0);
  for (size_t i = 0; i < size_; ++i)
    if (worths_[i] != 0)
      for (size_t j = 0; j < size_; ++j) duals[j] += worths_[i] * inverse(i, j);
  return duals;
}

std::vector<double> RestrictedMaster::prices() const {
  auto prices = duals();
  prices.pop_back();
  for (auto& price : prices) price = std::max(0.0, price);
  return prices;
}

bool RestrictedMaster::add(const Column& column, size_t number) {
  auto entry = column.taken;
  entry.push_back(1);
  const auto duals = this->duals();
  const double taken = std::inner_product(entry.begin(), entry.end(), duals.begin(), 0.0);
  if (column.worth - taken <= kNothing * (1 + column.worth)) return false;
  if (!enter(column.worth, entry, number)) return false;
  drop_negative_prices();
  return true;
}

std::vector<std::pair<size_t, double>> RestrictedMaster::mix() const {
  std::vector<std::pair<size_t, double>> mix;
  for (size_t i = 0; i < size_; ++i)
    if (numbers_[i] != kLeft) mix.emplace_back(numbers_[i], parts_[i]);
  return mix;
}

// What is left of rows that are priced below nothing had better be left.
void RestrictedMaster::drop_negative_prices() {
  for (size_t steps = 0; steps < 2 * size_; ++steps) {
    const auto duals = this->duals();
    const auto least = std::min_element(duals.begin(), duals.end());
    if (*least >= -kNothing * (1 + value())) return;
    std::vector<double> slack(size_, 0);
    slack[static_cast<size_t>(least - duals.begin())] = 1;
    if (!enter(0, slack, kLeft)) return;
  }
}

bool RestrictedMaster::enter(double worth, const std::vector<double>& entry, size_t number) {
  std::vector<double> change(size_, 0);  // of the parts, for a part of it
  for (size_t i = 0; i < size_; ++i)
    change[i] = std::inner_product(entry.begin(), entry.end(), &inverse_[i * size_], 0.0);
  size_t leaves = size_;
  for (size_t i = 0; i < size_; ++i)
    if (change[i] > kNothing &&
        (leaves == size_ || parts_[i] * change[leaves] < parts_[leaves] * change[i]))
      leaves = i;
  if (leaves == size_) return false;
  const double part = parts_[leaves] / change[leaves];
  for (size_t j = 0; j < size_; ++j) inverse(leaves, j) /= change[leaves];
  for (size_t i = 0; i < size_; ++i) {
    if (i == leaves || change[i] == 0) continue;
    parts_[i] = std::max(0.0, parts_[i] - part * change[i]);
    for (size_t j = 0; j < size_; ++j) inverse(i, j) -= change[i] * inverse(leaves, j);
  }
  parts_[leaves] = part;
  worths_[leaves] = worth;
  numbers_[leaves] = number;
  return true;
}

}  // namespace tierpilot::sharing
