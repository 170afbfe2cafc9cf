// Builds a Graph from what a log says, line by line, and refuses what makes no sense. Names are the
// log's; every function returns kInvalid with the name and the cause, without the place.
#pragma once

#include <span>
#include <string_view>
#include <unordered_map>

#include "base/result.h"
#include "policies/swap/graph.h"

namespace tierpilot::swap {

// Sums over a whole log stay far from the end of int64_t.
inline constexpr int64_t kMaxBytes = int64_t{1} << 50;
inline constexpr int64_t kMaxTotal = int64_t{1} << 60;

struct NewTensor {
  std::string name;
  int64_t bytes = 0;  // not used for views
  int alias = -1;     // position of the argument whose storage it shares
};

class GraphBuilder {
 public:
  Status constant(const std::string& name, int64_t bytes);
  Status call(const std::string& name, std::span<const std::string> args,
              std::span<const NewTensor> results, int64_t time_ns);
  // Positions of `args` that the operator overwrites: each becomes a tensor in a new storage as
  // large as the old one's, to which that one name moves.
  Status mutate(const std::string& name, std::span<const std::string> args,
                std::span<const int64_t> positions, int64_t time_ns);
  Status copy(const std::string& to, const std::string& from);
  Status copy_from(const std::string& to, const std::string& from);
  // Names that were never defined are ignored.
  Status release(const std::string& name);
  void backward();
  // What still has a handle becomes an output: in the order of names, also of released ones, as
  // the first name of a tensor is its place.
  Graph take(std::string name);

 private:
  struct Handle {
    TensorId tensor = kNone;
    size_t order = 0;
    bool released = false;
  };
  Result<TensorId> find(const std::string& name) const;
  Status define(const std::string& name, TensorId tensor);
  Result<StorageId> add_storage(const std::string& name, int64_t bytes, bool constant);
  TensorId add_tensor(OperatorId maker, StorageId storage, bool owner);
  Result<OperatorId> add_operator(const std::string& name, std::span<const std::string> args,
                                  int64_t time_ns);

  Graph graph_;
  std::unordered_map<std::string, Handle> handles_;
  int64_t total_bytes_ = 0, total_ns_ = 0;
};

}  // namespace tierpilot::swap
