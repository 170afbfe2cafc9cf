// The linear program of column generation that is solved by columns as they are found.
#pragma once

#include <cstddef>
#include <utility>
#include <vector>

namespace tierpilot::sharing {

// Maximises the worth of a mix of columns, the parts of which are together at most 1, as is what
// they take of each row. Revised simplex on an explicit inverse: rows are to be few.
class RestrictedMaster {
 public:
  struct Column {
    double worth = 0;
    std::vector<double> taken;  // by row
  };

  explicit RestrictedMaster(size_t rows);

  double value() const;
  // What a row is worth to the mix; none below 0.
  std::vector<double> prices() const;
  // False: it would not make the mix better. `number`: what mix() calls it.
  bool add(const Column& column, size_t number);
  // Parts by the numbers of their columns.
  std::vector<std::pair<size_t, double>> mix() const;

 private:
  std::vector<double> duals() const;
  bool enter(double worth, const std::vector<double>& entry, size_t number);
  void drop_negative_prices();
  double& inverse(size_t row, size_t column) { return inverse_[row * size_ + column]; }
  double inverse(size_t row, size_t column) const { return inverse_[row * size_ + column]; }

  size_t size_;                  // rows, and that of the parts
  std::vector<double> inverse_;  // of the basis
  std::vector<double> parts_;    // of its columns
  std::vector<double> worths_;
  std::vector<size_t> numbers_;
};

}  // namespace tierpilot::sharing
