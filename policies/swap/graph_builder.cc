#include "policies/swap/graph_builder.h"

#include <fmt/format.h>

#include <utility>

namespace tierpilot::swap {

using Kind = Event::Kind;

Result<TensorId> GraphBuilder::find(const std::string& name) const {
  const auto found = handles_.find(name);
  if (found == handles_.end())
    return fail(ErrorCode::kInvalid, fmt::format("tensor '{}' was never defined", name));
  if (found->second.released)
    return fail(ErrorCode::kInvalid, fmt::format("tensor '{}' was released before", name));
  return found->second.tensor;
}

Status GraphBuilder::define(const std::string& name, TensorId tensor) {
  if (!handles_.try_emplace(name, Handle{tensor, handles_.size()}).second)
    return fail(ErrorCode::kInvalid, fmt::format("tensor '{}' is defined a second time", name));
  return {};
}

Result<StorageId> GraphBuilder::add_storage(const std::string& name, int64_t bytes, bool constant) {
  if (bytes < 0 || bytes > kMaxBytes || total_bytes_ + bytes > kMaxTotal)
    return fail(ErrorCode::kInvalid, fmt::format("tensor '{}' cannot have {} bytes", name, bytes));
  total_bytes_ += bytes;
  graph_.storages.push_back({.bytes = bytes, .constant = constant});
  return static_cast<StorageId>(graph_.storages.size() - 1);
}

TensorId GraphBuilder::add_tensor(OperatorId maker, StorageId storage, bool owner) {
  const auto id = static_cast<TensorId>(graph_.tensors.size());
  graph_.tensors.push_back({.maker = maker, .storage = storage, .owner = owner});
  graph_.storages[storage].tensors.push_back(id);
  return id;
}

Result<OperatorId> GraphBuilder::add_operator(const std::string& name,
                                              std::span<const std::string> args, int64_t time_ns) {
  if (time_ns < 0 || time_ns > kMaxBytes || total_ns_ + time_ns > kMaxTotal)
    return fail(ErrorCode::kInvalid, fmt::format("operator '{}' cannot take {} ns", name, time_ns));
  Operator made{.name = name, .time_ns = time_ns};
  for (const auto& arg : args) {
    const auto tensor = find(arg);
    if (!tensor) return tl::unexpected(tensor.error());
    made.args.push_back(*tensor);
  }
  total_ns_ += time_ns;
  graph_.operators.push_back(std::move(made));
  const auto id = static_cast<OperatorId>(graph_.operators.size() - 1);
  graph_.events.push_back({Kind::kRun, id});
  return id;
}

Status GraphBuilder::constant(const std::string& name, int64_t bytes) {
  const auto storage = add_storage(name, bytes, true);
  if (!storage) return tl::unexpected(storage.error());
  graph_.events.push_back({Kind::kConstant, *storage});
  return define(name, add_tensor(kNone, *storage, true));
}

Status GraphBuilder::call(const std::string& name, std::span<const std::string> args,
                          std::span<const NewTensor> results, int64_t time_ns) {
  const auto made = add_operator(name, args, time_ns);
  if (!made) return tl::unexpected(made.error());
  for (const auto& result : results) {
    if (result.alias < -1 || result.alias >= static_cast<int>(args.size()))
      return fail(ErrorCode::kInvalid,
                  fmt::format("tensor '{}' shares the storage of argument {}, but '{}' has {}",
                              result.name, result.alias, name, args.size()));
    Result<StorageId> storage = kNone;
    if (result.alias < 0)
      storage = add_storage(result.name, result.bytes, false);
    else
      storage = graph_.tensors[graph_.operators[*made].args[result.alias]].storage;
    if (!storage) return tl::unexpected(storage.error());
    const auto tensor = add_tensor(*made, *storage, result.alias < 0);
    graph_.operators[*made].outputs.push_back(tensor);
    if (auto status = define(result.name, tensor); !status) return status;
  }
  return {};
}

Status GraphBuilder::mutate(const std::string& name, std::span<const std::string> args,
                            std::span<const int64_t> positions, int64_t time_ns) {
  const auto made = add_operator(name, args, time_ns);
  if (!made) return tl::unexpected(made.error());
  for (const auto position : positions) {
    if (position < 0 || position >= static_cast<int64_t>(args.size()))
      return fail(ErrorCode::kInvalid,
                  fmt::format("operator '{}' overwrites argument {}, but has {}", name, position,
                              args.size()));
    auto& handle = handles_.at(args[position]);
    const auto storage = add_storage(args[position], graph_.storage_of(handle.tensor).bytes, false);
    if (!storage) return tl::unexpected(storage.error());
    const auto tensor = add_tensor(*made, *storage, true);
    graph_.operators[*made].outputs.push_back(tensor);
    graph_.events.push_back({Kind::kDrop, handle.tensor});
    handle.tensor = tensor;
  }
  return {};
}

Status GraphBuilder::copy(const std::string& to, const std::string& from) {
  const auto tensor = find(from);
  if (!tensor) return tl::unexpected(tensor.error());
  graph_.events.push_back({Kind::kRetain, *tensor});
  return define(to, *tensor);
}

Status GraphBuilder::copy_from(const std::string& to, const std::string& from) {
  const auto old = find(to), tensor = find(from);
  if (!old) return tl::unexpected(old.error());
  if (!tensor) return tl::unexpected(tensor.error());
  graph_.events.push_back({Kind::kDrop, *old});
  graph_.events.push_back({Kind::kRetain, *tensor});
  handles_.at(to).tensor = *tensor;
  return {};
}

Status GraphBuilder::release(const std::string& name) {
  if (!handles_.contains(name)) return {};
  const auto tensor = find(name);
  if (!tensor) return tl::unexpected(tensor.error());
  graph_.events.push_back({Kind::kDrop, *tensor});
  handles_.at(name).released = true;
  return {};
}

void GraphBuilder::backward() {
  if (graph_.backward == kNone) graph_.backward = static_cast<OperatorId>(graph_.operators.size());
}

Graph GraphBuilder::take(std::string name) {
  std::vector<uint8_t> alive(graph_.tensors.size());
  std::vector<TensorId> by_order(handles_.size());
  for (const auto& [_, handle] : handles_) {
    by_order[handle.order] = handle.tensor;
    if (!handle.released) alive[handle.tensor] = 1;
  }
  for (const auto tensor : by_order)
    if (std::exchange(alive[tensor], 0)) graph_.outputs.push_back(tensor);
  graph_.name = std::move(name);
  return std::move(graph_);
}

}  // namespace tierpilot::swap
