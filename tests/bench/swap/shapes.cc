#include "tests/bench/swap/shapes.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <map>
#include <stdexcept>

#include "base/random.h"
#include "policies/swap/graph_builder.h"
#include "policies/swap/readers.h"

namespace tierpilot::swap {
namespace {

void must(const Status& status) {
  if (!status) throw std::runtime_error(status.error().message);
}

// Writes down a forward pass and adds the backward pass that automatic differentiation would run:
// an operator's gradient reads that of its output and what was saved, and several for one tensor
// are summed.
class Tape {
 public:
  Tape() { must(builder_.constant("input", 1'000'000)); }

  std::string op(const std::string& name, const std::vector<std::string>& args, int64_t bytes,
                 int64_t time_ns) {
    const auto out = fmt::format("{}{}", name, ops_.size());
    const NewTensor results[] = {{out, bytes}};
    must(builder_.call(name, args, results, time_ns));
    bytes_[out] = bytes;
    ops_.push_back({name, args, out, time_ns});
    return out;
  }

  Graph take(const std::string& name) {
    builder_.backward();
    gradients_[ops_.back().out] = ops_.back().out;
    for (auto at = ops_.rbegin(); at != ops_.rend(); ++at) differentiate(*at);
    return builder_.take(name);
  }

 private:
  struct Op {
    std::string name;
    std::vector<std::string> args;
    std::string out;
    int64_t time_ns;
  };

  void differentiate(const Op& op) {
    const auto from = gradients_.at(op.out);
    std::vector<std::string> args = op.args;
    args.push_back(op.out);
    if (from != op.out) args.push_back(from);
    std::vector<NewTensor> results;
    for (const auto& arg : op.args)
      if (bytes_.contains(arg)) results.push_back({fmt::format("g{}", ++made_), bytes_[arg]});
    if (results.empty()) results.push_back({fmt::format("g{}", ++made_), 0});
    must(builder_.call(op.name + "_backward", args, results, 2 * op.time_ns));
    size_t next = 0;
    for (const auto& arg : op.args)
      if (bytes_.contains(arg)) add(arg, results[next++].name);
    must(builder_.release(op.out));
    if (from != op.out) must(builder_.release(from));
  }

  void add(const std::string& tensor, const std::string& gradient) {
    const auto known = gradients_.find(tensor);
    if (known == gradients_.end()) {
      gradients_[tensor] = gradient;
      return;
    }
    const auto sum = fmt::format("g{}", ++made_);
    const std::string args[] = {known->second, gradient};
    const NewTensor results[] = {{sum, bytes_[tensor]}};
    must(builder_.call("add", args, results, kLaunchNs + bytes_[tensor] / 200));
    for (const auto& gone : args) must(builder_.release(gone));
    known->second = sum;
  }

  static constexpr int64_t kLaunchNs = 5'000;
  GraphBuilder builder_;
  std::vector<Op> ops_;
  std::map<std::string, int64_t> bytes_;
  std::map<std::string, std::string> gradients_;
  size_t made_ = 0;
};

constexpr int64_t kKiB = 1024, kUs = 1'000;

// The net of the most layers that has no more than so many tensors.
template <class Make>
Graph largest(size_t tensors, Make make) {
  const double one = static_cast<double>(make(8).tensors.size()) / 8;
  auto layers = static_cast<size_t>(static_cast<double>(tensors) / one) + 2;
  auto graph = make(layers);
  while (graph.tensors.size() > tensors) graph = make(--layers);
  return graph;
}

}  // namespace

Graph transformer(size_t tensors) {
  return largest(tensors, [](size_t layers) {
    Tape tape;
    auto x = tape.op("embed", {"input"}, 768 * kKiB, 9 * kUs);
    for (size_t at = 0; at < layers; ++at) {
      const auto norm = tape.op("norm", {x}, 768 * kKiB, 8 * kUs);
      const auto q = tape.op("query", {norm}, 768 * kKiB, 15 * kUs);
      const auto k = tape.op("key", {norm}, 768 * kKiB, 15 * kUs);
      const auto v = tape.op("value", {norm}, 768 * kKiB, 15 * kUs);
      const auto scores = tape.op("scores", {q, k}, 2304 * kKiB, 17 * kUs);
      const auto soft = tape.op("softmax", {scores}, 2304 * kKiB, 13 * kUs);
      const auto drop = tape.op("dropout", {soft}, 2304 * kKiB, 13 * kUs);
      const auto mixed = tape.op("mix", {drop, v}, 768 * kKiB, 17 * kUs);
      const auto out = tape.op("out", {mixed}, 768 * kKiB, 15 * kUs);
      const auto middle = tape.op("sum", {x, out}, 768 * kKiB, 8 * kUs);
      const auto norm2 = tape.op("norm", {middle}, 768 * kKiB, 8 * kUs);
      const auto wide = tape.op("wide", {norm2}, 3072 * kKiB, 45 * kUs);
      const auto gelu = tape.op("gelu", {wide}, 3072 * kKiB, 16 * kUs);
      const auto narrow = tape.op("narrow", {gelu}, 768 * kKiB, 45 * kUs);
      x = tape.op("sum", {middle, narrow}, 768 * kKiB, 8 * kUs);
    }
    return tape.take("transformer");
  });
}

Graph residual_net(size_t tensors) {
  return largest(tensors, [](size_t layers) {
    Tape tape;
    auto x = tape.op("stem", {"input"}, 2048 * kKiB, 30 * kUs);
    for (size_t at = 0; at < layers; ++at) {
      // Pictures shrink and channels grow at a third and at two thirds.
      const auto bytes = int64_t{2048 * kKiB} >> (3 * at / layers);
      const auto light = 5 * kUs + bytes / 300;
      auto y = x;
      for (int half = 0; half < 2; ++half) {
        y = tape.op("conv", {y}, bytes, 40 * kUs);
        y = tape.op("norm", {y}, bytes, light);
        if (half == 0) y = tape.op("relu", {y}, bytes, light);
      }
      x = tape.op("relu", {tape.op("sum", {x, y}, bytes, light)}, bytes, light);
    }
    return tape.take("residual");
  });
}

Graph dense_net(size_t tensors) {
  constexpr size_t kBlock = 24;
  return largest(tensors, [](size_t layers) {
    Tape tape;
    auto x = tape.op("stem", {"input"}, 1024 * kKiB, 30 * kUs);
    std::vector<std::string> parts{x};
    for (size_t at = 0; at < layers; ++at) {
      if (parts.size() > kBlock) parts = {tape.op("transition", parts, 1024 * kKiB, 20 * kUs)};
      const auto bytes = static_cast<int64_t>(512 * kKiB * (1 + parts.size()));
      const auto joined = tape.op("join", parts, bytes, 5 * kUs + bytes / 300);
      const auto norm = tape.op("norm", {joined}, bytes, 5 * kUs + bytes / 300);
      parts.push_back(tape.op("conv", {norm}, 512 * kKiB, 30 * kUs));
    }
    return tape.take("dense");
  });
}

Graph long_lived(size_t tensors) {
  return largest(tensors, [](size_t layers) {
    Tape tape;
    SeededRandom random(5);
    std::vector<std::string> kept;
    auto x = tape.op("stem", {"input"}, 1024 * kKiB, 30 * kUs);
    for (size_t at = 0; at < layers / 2; ++at) {
      const auto bytes = static_cast<int64_t>(random.log_uniform(1e5, 4e6));
      x = tape.op("down", {x}, bytes, static_cast<int64_t>(random.log_uniform(1e4, 1e5)));
      kept.push_back(x);
    }
    for (auto skip = kept.rbegin(); skip != kept.rend(); ++skip) {
      const auto bytes = static_cast<int64_t>(random.log_uniform(1e5, 4e6));
      x = tape.op("up", {x, *skip}, bytes, static_cast<int64_t>(random.log_uniform(1e4, 1e5)));
    }
    return tape.take("long-lived");
  });
}

std::optional<Graph> repeated(const std::filesystem::path& table, const std::string& net,
                              size_t tensors) {
  std::ifstream file(table);
  std::string head, line;
  if (!std::getline(file, head)) return {};
  struct Row {
    std::string before;  // model,micro_batch,op,name
    int64_t repeat;
    std::string after;
  };
  std::vector<Row> rows;
  while (std::getline(file, line)) {
    size_t comma[5], from = 0;
    for (auto& at : comma) from = (at = line.find(',', from)) + 1;
    if (line.substr(0, comma[0]) + "/" + line.substr(comma[0] + 1, comma[1] - comma[0] - 1) != net)
      continue;
    rows.push_back(
        {line.substr(0, comma[3]), std::stoll(line.substr(comma[3] + 1)), line.substr(comma[4])});
  }
  // Where no row is a part of a block, the net as a whole is one.
  const bool blocks =
      std::any_of(rows.begin(), rows.end(), [](const Row& row) { return row.repeat > 1; });
  const auto made = [&](double times) -> std::optional<Graph> {
    const auto path = std::filesystem::temp_directory_path() / "tierpilot-plan-bench.csv";
    std::ofstream out(path);
    out << head << "\n";
    for (const auto& [before, repeat, after] : rows) {
      const bool once = repeat == 1 && blocks;
      const auto more = once ? 1 : std::llround(static_cast<double>(repeat) * times);
      out << before << "," << std::max<int64_t>(more, 1) << after << "\n";
    }
    out.close();
    auto graphs = read_operator_table(path);
    std::filesystem::remove(path);
    if (!graphs) return {};
    return std::move(graphs->front());
  };
  auto graph = made(1);
  if (!graph) return {};
  return made(static_cast<double>(tensors) / static_cast<double>(graph->tensors.size()));
}

ObservedStep observed(size_t saves, uint64_t seed) {
  SeededRandom random(seed);
  ObservedStep step;
  for (size_t at = 0; at < saves; ++at) {
    step.saves.push_back({.place = at + 1,
                          .kind = static_cast<uint32_t>(at % 12),
                          .bytes = static_cast<int64_t>(random.log_uniform(1e5, 4e6))});
    step.uses.push_back(static_cast<uint32_t>(saves - 1 - at));
  }
  for (size_t at = 0; at <= step.events(); ++at) {
    const double most_ns = at < saves ? 1e6 : 2e6;
    step.time_ns.push_back(static_cast<int64_t>(random.log_uniform(most_ns / 100, most_ns)));
    step.other_bytes.push_back(static_cast<int64_t>(random.log_uniform(1e6, 4e6)));
  }
  return step;
}

}  // namespace tierpilot::swap
