#include <algorithm>
#include <array>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <numeric>
#include <span>

#include "base/text/json_whole.h"
#include "policies/sharing/predict/regressor.h"
#include "policies/sharing/predict/saved_kinds.h"

namespace tierpilot::sharing {
namespace {

constexpr size_t kRanges = 64;
constexpr size_t kAtOnce = 4;  // columns

struct Split {
  double gain = 0;
  size_t column = 0;
  uint8_t range = 0;  // rows up to here go left
};

struct Node {
  bool is_leaf = true;
  size_t column = 0;
  double threshold = 0;
  uint32_t left = 0, right = 0;
  double value = 0;
};

class BoostedTrees final : public Regressor {
 public:
  explicit BoostedTrees(const TreeSettings& settings) : settings_(settings) {}
  BoostedTrees(double base, std::vector<std::vector<Node>> trees)
      : base_(base), trees_(std::move(trees)) {}

  void fit(const std::vector<Row>& rows, const std::vector<double>& targets) override {
    cut(rows);
    trees_.clear();
    base_ =
        std::accumulate(targets.begin(), targets.end(), 0.0) / static_cast<double>(targets.size());
    left_ = targets;
    for (auto& value : left_) value -= base_;
    for (uint32_t tree = 0; tree < settings_.trees; ++tree) {
      std::vector<uint32_t> all(rows.size());
      std::iota(all.begin(), all.end(), 0);
      trees_.emplace_back();
      grow(trees_.back(), all, 0);
    }
    ranges_.clear();
    left_.clear();
  }

  double predict(const Row& row) const override {
    double sum = base_;
    for (const auto& tree : trees_) {
      size_t at = 0;
      while (!tree[at].is_leaf)
        at = row[tree[at].column] <= tree[at].threshold ? tree[at].left : tree[at].right;
      sum += tree[at].value;
    }
    return sum;
  }

  // A node is its value, or its column, threshold and the two behind it.
  nlohmann::json saved() const override {
    nlohmann::json trees = nlohmann::json::array();
    for (const auto& tree : trees_) {
      trees.push_back(nlohmann::json::array());
      for (const auto& node : tree)
        if (node.is_leaf)
          trees.back().push_back({node.value});
        else
          trees.back().push_back({node.column, node.threshold, node.left, node.right});
    }
    return {{"kind", "boosted trees"}, {"base", base_}, {"trees", trees}};
  }

 private:
  // Borders at quantiles of each column.
  void cut(const std::vector<Row>& rows) {
    const size_t columns = rows.front().size();
    borders_.assign(columns, {});
    ranges_.assign(columns, std::vector<uint8_t>(rows.size()));
    split_columns_.clear();
    for (size_t c = 0; c < columns; ++c) {
      std::vector<double> values;
      for (const auto& row : rows) values.push_back(row[c]);
      std::sort(values.begin(), values.end());
      values.erase(std::unique(values.begin(), values.end()), values.end());
      for (size_t i = 1; i < std::min(kRanges, values.size()); ++i) {
        const size_t at = i * values.size() / std::min(kRanges, values.size());
        borders_[c].push_back((values[at - 1] + values[at]) / 2);
      }
      if (!borders_[c].empty()) split_columns_.push_back(c);
      for (size_t r = 0; r < rows.size(); ++r)
        ranges_[c][r] = static_cast<uint8_t>(
            std::lower_bound(borders_[c].begin(), borders_[c].end(), rows[r][c]) -
            borders_[c].begin());
    }
  }

  // What is left, and how many rows, in each range of a column.
  struct Histogram {
    double sums[kRanges];
    uint32_t counts[kRanges];
  };

  Split best_split(const std::vector<uint32_t>& rows) const {
    double total = 0;
    for (const auto row : rows) total += left_[row];
    Split best;
    std::array<Histogram, kAtOnce> histograms;
    for (size_t next = 0; next < split_columns_.size(); next += kAtOnce) {
      const std::span<const size_t> columns(split_columns_.data() + next,
                                            std::min(kAtOnce, split_columns_.size() - next));
      count_rows(rows, columns, histograms);
      for (size_t i = 0; i < columns.size(); ++i)
        improve(best, columns[i], histograms[i], total, static_cast<double>(rows.size()));
    }
    return best;
  }

  // Of `columns` side by side: an addition to a range waits for the one before it.
  void count_rows(const std::vector<uint32_t>& rows, std::span<const size_t> columns,
                  std::array<Histogram, kAtOnce>& histograms) const {
    std::array<const uint8_t*, kAtOnce> ranges;
    for (size_t i = 0; i < kAtOnce; ++i) {
      histograms[i] = {};
      ranges[i] = ranges_[columns[std::min(i, columns.size() - 1)]].data();
    }
    for (const auto row : rows) {
      const double left = left_[row];
      for (size_t i = 0; i < kAtOnce; ++i) {
        histograms[i].sums[ranges[i][row]] += left;
        ++histograms[i].counts[ranges[i][row]];
      }
    }
  }

  void improve(Split& best, size_t column, const Histogram& histogram, double total,
               double count) const {
    double sum = 0, below = 0;
    for (size_t b = 0; b < borders_[column].size(); ++b) {
      sum += histogram.sums[b];
      below += histogram.counts[b];
      if (below < settings_.least_rows || count - below < settings_.least_rows) continue;
      const double gain = sum * sum / below + (total - sum) * (total - sum) / (count - below) -
                          total * total / count;
      if (gain > best.gain + 1e-12) best = {gain, column, static_cast<uint8_t>(b)};
    }
  }

  uint32_t grow(std::vector<Node>& tree, const std::vector<uint32_t>& rows, uint32_t depth) {
    const auto at = static_cast<uint32_t>(tree.size());
    tree.emplace_back();
    const Split split = depth < settings_.depth ? best_split(rows) : Split{};
    if (split.gain <= 0) {
      double sum = 0;
      for (const auto row : rows) sum += left_[row];
      tree[at].value = settings_.rate * sum / static_cast<double>(rows.size());
      for (const auto row : rows) left_[row] -= tree[at].value;
      return at;
    }
    std::vector<uint32_t> low, high;
    for (const auto row : rows)
      (ranges_[split.column][row] <= split.range ? low : high).push_back(row);
    tree[at].is_leaf = false;
    tree[at].column = split.column;
    tree[at].threshold = borders_[split.column][split.range];
    const auto left = grow(tree, low, depth + 1);
    const auto right = grow(tree, high, depth + 1);
    tree[at].left = left;
    tree[at].right = right;
    return at;
  }

  const TreeSettings settings_ = {};
  double base_ = 0;
  std::vector<std::vector<Node>> trees_;
  std::vector<Row> borders_;
  std::vector<std::vector<uint8_t>> ranges_;  // by column and row, while fitting
  std::vector<size_t> split_columns_;         // that differ between rows
  std::vector<double> left_;
};

// Those behind a node come after it, so every walk ends.
bool is_sound(const std::vector<Node>& tree, size_t columns) {
  for (size_t i = 0; i < tree.size(); ++i) {
    const auto& node = tree[i];
    if (node.is_leaf) continue;
    const bool behind =
        node.left > i && node.left < tree.size() && node.right > i && node.right < tree.size();
    if (!behind || node.column >= columns) return false;
  }
  return !tree.empty();
}

Node read_node(const nlohmann::json& saved) {
  if (saved.size() == 1) return {.value = saved.at(0).get<double>()};
  return {.is_leaf = false,
          .column = whole_number<size_t>(saved.at(0)),
          .threshold = saved.at(1).get<double>(),
          .left = whole_number<uint32_t>(saved.at(2)),
          .right = whole_number<uint32_t>(saved.at(3))};
}

}  // namespace

std::unique_ptr<Regressor> read_boosted_trees(const nlohmann::json& saved, size_t columns) {
  std::vector<std::vector<Node>> trees;
  for (const auto& each : saved.at("trees")) {
    trees.emplace_back();
    for (const auto& node : each) trees.back().push_back(read_node(node));
    if (!is_sound(trees.back(), columns)) return nullptr;
  }
  return std::make_unique<BoostedTrees>(saved.at("base").get<double>(), std::move(trees));
}

std::unique_ptr<Regressor> make_boosted_trees(const TreeSettings& settings) {
  return std::make_unique<BoostedTrees>(settings);
}

}  // namespace tierpilot::sharing
