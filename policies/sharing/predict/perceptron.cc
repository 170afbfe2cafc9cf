#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <numeric>

#include "base/random.h"
#include "base/text/json_whole.h"
#include "policies/sharing/predict/adam.h"
#include "policies/sharing/predict/saved_kinds.h"
#include "policies/sharing/predict/standardised.h"

namespace tierpilot::sharing {
namespace {

constexpr size_t kBatch = 32;

// Layers one after another in one vector: of each the weights, output by output, then the biases.
class Layers {
 public:
  Layers() = default;
  explicit Layers(std::vector<size_t> widths) : widths_(std::move(widths)) {
    size_t count = 0;
    for (size_t i = 1; i < widths_.size(); ++i) count += widths_[i] * (widths_[i - 1] + 1);
    values.assign(count, 0);
  }

  const std::vector<size_t>& widths() const { return widths_; }

  // He et al., Delving Deep into Rectifiers, ICCV 2015; uniform.
  void draw(SeededRandom& random) {
    size_t at = 0;
    for (size_t i = 1; i < widths_.size(); ++i) {
      const double most = std::sqrt(6.0 / static_cast<double>(widths_[i - 1]));
      for (size_t k = 0; k < widths_[i] * widths_[i - 1]; ++k)
        values[at++] = most * (2 * random.unit() - 1);
      at += widths_[i];
    }
  }

  // What each layer gives; the first is the row itself.
  std::vector<Row> forward(const Row& row) const {
    std::vector<Row> made{row};
    size_t at = 0;
    for (size_t i = 1; i < widths_.size(); ++i) {
      const size_t given = widths_[i - 1];
      Row out(widths_[i]);
      const double* weights = values.data() + at;
      const double* biases = weights + widths_[i] * given;
      for (size_t o = 0; o < out.size(); ++o) {
        out[o] = std::inner_product(made.back().begin(), made.back().end(), weights + o * given,
                                    biases[o]);
        if (i + 1 < widths_.size()) out[o] = std::max(out[o], 0.0);
      }
      at += widths_[i] * (given + 1);
      made.push_back(std::move(out));
    }
    return made;
  }

  // Adds to `gradients` for a loss whose slope at the output is `slope`.
  void backward(const std::vector<Row>& made, double slope, Row& gradients) const {
    Row slopes{slope};
    size_t at = values.size();
    for (size_t i = widths_.size() - 1; i > 0; --i) {
      const size_t given = widths_[i - 1];
      at -= widths_[i] * (given + 1);
      Row before(given, 0);
      for (size_t o = 0; o < widths_[i]; ++o) {
        gradients[at + widths_[i] * given + o] += slopes[o];
        for (size_t k = 0; k < given; ++k) {
          gradients[at + o * given + k] += slopes[o] * made[i - 1][k];
          before[k] += slopes[o] * values[at + o * given + k];
        }
      }
      if (i > 1)
        for (size_t k = 0; k < given; ++k)
          if (made[i - 1][k] <= 0) before[k] = 0;
      slopes = std::move(before);
    }
  }

  Row values;

 private:
  std::vector<size_t> widths_;
};

class Perceptron final : public Regressor {
 public:
  explicit Perceptron(const PerceptronSettings& settings) : settings_(settings) {}
  Perceptron(Standardised scale, Layers layers, double mean, double deviation)
      : scale_(std::move(scale)), layers_(std::move(layers)), mean_(mean), deviation_(deviation) {}

  void fit(const std::vector<Row>& rows, const std::vector<double>& targets) override {
    prepare(rows, targets);
    SeededRandom random(settings_.seed);
    layers_.draw(random);
    std::vector<Row> scaled;
    for (const auto& row : rows) scaled.push_back(scale_(row));
    std::vector<size_t> order(rows.size());
    std::iota(order.begin(), order.end(), 0);
    Adam adam(layers_.values.size(), settings_.rate);
    for (uint32_t epoch = 0; epoch < settings_.epochs; ++epoch) {
      for (size_t i = order.size(); i > 1; --i) std::swap(order[i - 1], order[random.below(i)]);
      for (size_t at = 0; at < order.size(); at += kBatch) {
        const size_t end = std::min(order.size(), at + kBatch);
        Row gradients(layers_.values.size(), 0);
        for (size_t i = at; i < end; ++i) {
          const auto made = layers_.forward(scaled[order[i]]);
          const double wanted = (targets[order[i]] - mean_) / deviation_;
          const double slope = 2 * (made.back()[0] - wanted) / static_cast<double>(end - at);
          layers_.backward(made, slope, gradients);
        }
        adam.step(layers_.values, gradients);
      }
    }
  }

  double predict(const Row& row) const override {
    return mean_ + deviation_ * layers_.forward(scale_(row)).back()[0];
  }

  nlohmann::json saved() const override {
    return {{"kind", "perceptron"},       {"means", scale_.means()},  {"scales", scale_.scales()},
            {"widths", layers_.widths()}, {"values", layers_.values}, {"mean", mean_},
            {"deviation", deviation_}};
  }

 private:
  void prepare(const std::vector<Row>& rows, const std::vector<double>& targets) {
    scale_.fit(rows);
    const double count = static_cast<double>(targets.size());
    mean_ = std::accumulate(targets.begin(), targets.end(), 0.0) / count;
    double squares = 0;
    for (const double target : targets) squares += (target - mean_) * (target - mean_);
    deviation_ = std::max(std::sqrt(squares / count), 1e-9);
    std::vector<size_t> widths{rows.front().size()};
    widths.insert(widths.end(), settings_.hidden.begin(), settings_.hidden.end());
    widths.push_back(1);
    layers_ = Layers(widths);
  }

  const PerceptronSettings settings_ = {};
  Standardised scale_;
  Layers layers_;
  double mean_ = 0, deviation_ = 1;
};

}  // namespace

std::unique_ptr<Regressor> make_perceptron(const PerceptronSettings& settings) {
  return std::make_unique<Perceptron>(settings);
}

std::unique_ptr<Regressor> read_perceptron(const nlohmann::json& saved, size_t columns) {
  constexpr size_t kMaxLayers = 16, kMaxWidth = 4096;
  std::vector<size_t> widths;
  for (const auto& width : saved.at("widths")) widths.push_back(whole_number<size_t>(width));
  if (widths.size() < 2 || widths.size() > kMaxLayers || widths.front() != columns ||
      widths.back() != 1 || *std::max_element(widths.begin(), widths.end()) > kMaxWidth)
    return nullptr;
  Layers layers(widths);
  auto values = saved.at("values").get<Row>();
  auto means = saved.at("means").get<Row>(), scales = saved.at("scales").get<Row>();
  if (values.size() != layers.values.size() || means.size() != columns || scales.size() != columns)
    return nullptr;
  layers.values = std::move(values);
  return std::make_unique<Perceptron>(Standardised(std::move(means), std::move(scales)),
                                      std::move(layers), saved.at("mean").get<double>(),
                                      saved.at("deviation").get<double>());
}

}  // namespace tierpilot::sharing
