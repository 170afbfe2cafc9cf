// Linear equations with a symmetric positive definite matrix.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <vector>

namespace tierpilot::sharing {

// Solves a x = b in place. Of `a` only the lower triangle is read, and becomes its factor.
inline void solve_by_cholesky(std::vector<std::vector<double>>& a, std::vector<double>& b) {
  constexpr double kLeastPivot = 1e-12;
  const size_t n = b.size();
  for (size_t i = 0; i < n; ++i)
    for (size_t j = 0; j <= i; ++j) {
      double sum = a[i][j];
      for (size_t k = 0; k < j; ++k) sum -= a[i][k] * a[j][k];
      a[i][j] = i == j ? std::sqrt(std::max(sum, kLeastPivot)) : sum / a[j][j];
    }
  for (size_t i = 0; i < n; ++i) {
    for (size_t k = 0; k < i; ++k) b[i] -= a[i][k] * b[k];
    b[i] /= a[i][i];
  }
  for (size_t i = n; i-- > 0;) {
    for (size_t k = i + 1; k < n; ++k) b[i] -= a[k][i] * b[k];
    b[i] /= a[i][i];
  }
}

}  // namespace tierpilot::sharing
