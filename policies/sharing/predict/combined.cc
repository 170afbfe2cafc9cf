// Regressors made of others.
#include <nlohmann/json.hpp>

#include "policies/sharing/predict/regressor.h"

namespace tierpilot::sharing {
namespace {

class Stacked final : public Regressor {
 public:
  Stacked(std::unique_ptr<Regressor> first, std::unique_ptr<Regressor> second)
      : first_(std::move(first)), second_(std::move(second)) {}

  void fit(const std::vector<Row>& rows, const std::vector<double>& targets) override {
    first_->fit(rows, targets);
    auto left = targets;
    for (size_t i = 0; i < rows.size(); ++i) left[i] -= first_->predict(rows[i]);
    second_->fit(rows, left);
  }
  double predict(const Row& row) const override {
    return first_->predict(row) + second_->predict(row);
  }
  nlohmann::json saved() const override {
    return {{"kind", "stacked"}, {"first", first_->saved()}, {"second", second_->saved()}};
  }

 private:
  std::unique_ptr<Regressor> first_, second_;
};

class Average final : public Regressor {
 public:
  explicit Average(std::vector<std::unique_ptr<Regressor>> members)
      : members_(std::move(members)) {}

  void fit(const std::vector<Row>& rows, const std::vector<double>& targets) override {
    for (const auto& member : members_) member->fit(rows, targets);
  }
  double predict(const Row& row) const override {
    double sum = 0;
    for (const auto& member : members_) sum += member->predict(row);
    return sum / static_cast<double>(members_.size());
  }
  nlohmann::json saved() const override {
    nlohmann::json members = nlohmann::json::array();
    for (const auto& member : members_) members.push_back(member->saved());
    return {{"kind", "average"}, {"members", members}};
  }

 private:
  std::vector<std::unique_ptr<Regressor>> members_;
};

class OnColumns final : public Regressor {
 public:
  OnColumns(std::vector<size_t> columns, std::unique_ptr<Regressor> regressor, size_t of)
      : columns_(std::move(columns)), regressor_(std::move(regressor)), of_(of) {}

  void fit(const std::vector<Row>& rows, const std::vector<double>& targets) override {
    of_ = rows.front().size();
    std::vector<Row> seen;
    for (const auto& row : rows) seen.push_back(picked(row));
    regressor_->fit(seen, targets);
  }
  double predict(const Row& row) const override { return regressor_->predict(picked(row)); }
  nlohmann::json saved() const override {
    return {{"kind", "on columns"},
            {"of", of_},
            {"columns", columns_},
            {"regressor", regressor_->saved()}};
  }

 private:
  Row picked(const Row& row) const {
    Row picked;
    for (const auto column : columns_) picked.push_back(row[column]);
    return picked;
  }

  const std::vector<size_t> columns_;
  std::unique_ptr<Regressor> regressor_;
  size_t of_;  // so many a row has
};

}  // namespace

nlohmann::json Regressor::saved() const {
  return nullptr;
}

std::unique_ptr<Regressor> make_stacked(std::unique_ptr<Regressor> first,
                                        std::unique_ptr<Regressor> second) {
  return std::make_unique<Stacked>(std::move(first), std::move(second));
}

std::unique_ptr<Regressor> make_average(std::vector<std::unique_ptr<Regressor>> members) {
  return std::make_unique<Average>(std::move(members));
}

std::unique_ptr<Regressor> make_on_columns(std::vector<size_t> columns,
                                           std::unique_ptr<Regressor> regressor, size_t of) {
  return std::make_unique<OnColumns>(std::move(columns), std::move(regressor), of);
}

}  // namespace tierpilot::sharing
