#include <fmt/format.h>

#include <cmath>

#include "base/table/cell.h"
#include "base/table/csv_table.h"
#include "policies/swap/graph_builder.h"
#include "policies/swap/readers.h"

namespace tierpilot::swap {
namespace {

constexpr double kMiB = 1 << 20;
constexpr size_t kMostOperators = 100'000;  // of one net, with its repeats
constexpr size_t kMostOfTable = 200'000;    // a graph takes a kilobyte for each
constexpr size_t kMostNameBytes = 256;      // each repeat has it

// One operator of the forward pass and its mirror in the backward pass.
struct Layer {
  std::string name;
  size_t repeat = 1;
  int64_t forward_ns = 0, backward_ns = 0;
  int64_t output = 0, weights = 0, kept = 0, forward_scratch = 0, backward_scratch = 0;  // bytes
};

struct Net {
  std::string name;
  std::vector<Layer> rows;
};

class NetBuilder {
 public:
  explicit NetBuilder(const std::vector<Layer>& layers) : layers_(layers) {}

  Result<Graph> build(const std::string& name) {
    if (auto status = builder_.constant("input", 0); !status) return tl::unexpected(status.error());
    for (size_t at = 0; at < layers_.size(); ++at)
      if (auto status = forward(at); !status) return tl::unexpected(status.error());
    builder_.backward();
    for (size_t at = layers_.size(); at-- > 0;)
      if (auto status = backward(at); !status) return tl::unexpected(status.error());
    return builder_.take(name);
  }

 private:
  std::string output(size_t at) const { return at == 0 ? "input" : fmt::format("out{}", at - 1); }

  // What it keeps is a storage of its own; its scratch memory goes when it ends.
  Status forward(size_t at) {
    const auto& layer = layers_[at];
    const auto weights = fmt::format("w{}", at), scratch = fmt::format("s{}", at);
    if (auto status = builder_.constant(weights, layer.weights); !status) return status;
    const std::string args[] = {output(at), weights};
    const NewTensor results[] = {{output(at + 1), layer.output},
                                 {fmt::format("kept{}", at), layer.kept},
                                 {scratch, layer.forward_scratch}};
    if (auto status = builder_.call(layer.name, args, results, layer.forward_ns); !status)
      return status;
    if (auto status = builder_.release(scratch); !status) return status;
    return at == 0 ? Status{} : builder_.release(output(at));
  }

  Status backward(size_t at) {
    const auto& layer = layers_[at];
    const bool last = at + 1 == layers_.size();
    const auto weights = fmt::format("w{}", at), kept = fmt::format("kept{}", at),
               scratch = fmt::format("bs{}", at),
               from = last ? output(at + 1) : fmt::format("grad{}", at + 1);
    const std::string args[] = {from, kept, weights};
    const NewTensor results[] = {{fmt::format("grad{}", at), at == 0 ? 0 : layers_[at - 1].output},
                                 {fmt::format("wgrad{}", at), layer.weights},
                                 {scratch, layer.backward_scratch}};
    if (auto status = builder_.call(layer.name + "_backward", args, results, layer.backward_ns);
        !status)
      return status;
    for (const auto& gone : {from, kept, scratch})
      if (auto status = builder_.release(gone); !status) return status;
    return {};
  }

  const std::vector<Layer>& layers_;
  GraphBuilder builder_;
};

// Rows that follow each other with the same count are one block, which occurs so often.
Result<std::vector<Layer>> unrolled(const std::vector<Layer>& rows) {
  std::vector<Layer> layers;
  for (size_t begin = 0; begin < rows.size();) {
    size_t end = begin;
    while (end < rows.size() && rows[end].repeat == rows[begin].repeat) ++end;
    if (layers.size() + rows[begin].repeat * (end - begin) > kMostOperators)
      return fail(ErrorCode::kInvalid, fmt::format("has over {} operators", kMostOperators));
    for (size_t i = 0; i < rows[begin].repeat; ++i)
      layers.insert(layers.end(), rows.begin() + static_cast<ptrdiff_t>(begin),
                    rows.begin() + static_cast<ptrdiff_t>(end));
    begin = end;
  }
  return layers;
}

class TableReader {
 public:
  explicit TableReader(CsvTable table) : table_(std::move(table)) {}

  Result<std::vector<Graph>> read() {
    for (const auto* column : kColumns) {
      const auto found = table_.require({column});
      if (!found) return tl::unexpected(found.error());
      columns_.push_back(*found);
    }
    for (;;) {
      const auto more = table_.next();
      if (!more) return tl::unexpected(more.error());
      if (!*more) break;
      if (auto status = row(); !status) return at_place(status.error());
    }
    if (nets_.empty())
      return fail(ErrorCode::kInvalid, fmt::format("{}: has no operators", table_.place()));
    std::vector<Graph> graphs;
    for (const auto& net : nets_) {
      auto graph = graph_of(net);
      if (!graph) return at_place(graph.error());
      graphs.push_back(std::move(*graph));
    }
    return graphs;
  }

 private:
  static constexpr const char* kColumns[] = {"model",
                                             "micro_batch",
                                             "name",
                                             "repeat",
                                             "forward_us",
                                             "backward_us",
                                             "output_mb",
                                             "weights_mb",
                                             "kept_mb",
                                             "forward_scratch_mb",
                                             "backward_scratch_mb"};

  tl::unexpected<Error> at_place(const Error& error) const {
    return fail(ErrorCode::kInvalid, fmt::format("{}: {}", table_.place(), error.message));
  }

  Result<int64_t> number(size_t column, double scale) const {
    const auto text = table_.cell(columns_[column]);
    const auto value = parse_number(text);
    if (!value || *value < 0 || *value * scale > static_cast<double>(kMaxBytes))
      return fail(ErrorCode::kInvalid,
                  fmt::format("\"{}\" cannot be {}", kColumns[column], shown(text)));
    return std::llround(*value * scale);
  }

  Status row() {
    const auto net = fmt::format("{}/{}", table_.cell(columns_[0]), table_.cell(columns_[1]));
    if (nets_.empty() || nets_.back().name != net) nets_.push_back({net, {}});
    Layer layer{.name = std::string(table_.cell(columns_[2]))};
    if (layer.name.size() > kMostNameBytes)
      return fail(ErrorCode::kInvalid, fmt::format("\"name\" has over {} bytes", kMostNameBytes));
    int64_t repeat = 1;
    int64_t* const fields[] = {
        &repeat,        &layer.forward_ns, &layer.backward_ns,     &layer.output,
        &layer.weights, &layer.kept,       &layer.forward_scratch, &layer.backward_scratch};
    for (size_t i = 0; i < std::size(fields); ++i) {
      const auto value = number(3 + i, i == 0 ? 1 : i < 3 ? 1000 : kMiB);
      if (!value) return tl::unexpected(value.error());
      *fields[i] = *value;
    }
    if (repeat < 1 || repeat > static_cast<int64_t>(kMostOperators))
      return fail(ErrorCode::kInvalid, fmt::format("\"repeat\" cannot be {}", repeat));
    layer.repeat = static_cast<size_t>(repeat);
    if (operators_ += layer.repeat; operators_ > kMostOfTable)
      return fail(ErrorCode::kInvalid,
                  fmt::format("the nets so far have over {} operators together; give each half of "
                              "the table by itself",
                              kMostOfTable));
    nets_.back().rows.push_back(std::move(layer));
    return {};
  }

  static Result<Graph> graph_of(const Net& net) {
    const auto layers = unrolled(net.rows);
    if (!layers)
      return fail(ErrorCode::kInvalid,
                  fmt::format("net '{}' {}", net.name, layers.error().message));
    return NetBuilder(*layers).build(net.name);
  }

  CsvTable table_;
  std::vector<size_t> columns_;
  std::vector<Net> nets_;
  size_t operators_ = 0;  // of all nets
};

}  // namespace

Result<std::vector<Graph>> read_operator_table(const std::filesystem::path& path) {
  auto table = CsvTable::open(path);
  if (!table) return tl::unexpected(table.error());
  return TableReader(std::move(*table)).read();
}

}  // namespace tierpilot::swap
