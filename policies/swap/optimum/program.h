// An integer program, as a solver takes it.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "base/result.h"

namespace tierpilot::swap {

class Program {
 public:
  using Column = int;
  using Terms = std::vector<std::pair<Column, double>>;

  Program();
  ~Program();
  Program(const Program&) = delete;
  Program& operator=(const Program&) = delete;

  Column binary(double cost = 0) { return add(0, 1, cost, true); }
  Column number(double least, double most) { return add(least, most, 0, false); }
  // The sum of the terms is within the bounds.
  void at_most(const Terms& terms, double bound) { add('L', terms, bound); }
  void equal(const Terms& terms, double value) { add('E', terms, value); }
  void fix(Column column, double value) { equal({{column, 1}}, value); }

  struct Solution {
    std::vector<double> values;  // by column
    double cost = 0;
    double bound = 0;  // no solution costs less
    bool proven = false;
  };
  // kNotFound: there is none. kTimeout: none was found with that effort. kIo: the solver failed.
  Result<Solution> minimise(double seconds, int nodes);

 private:
  // In a process of its own: failed assertions of the solver (Clp 1.17) would end this one.
  void solve(double seconds, int nodes, int to);
  Column add(double least, double most, double cost, bool integer);
  void add(char sense, const Terms& terms, double bound);

  void* model_;
  int columns_ = 0;
};

}  // namespace tierpilot::swap
