#include "coordinator/core/data/dataset_admin.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/text/utf8.h"
#include "coordinator/store/records.h"
#include "model/checkpoint_name.h"

namespace tierpilot {
namespace {

// Empty ones take no room on any node, but here, and all are looked at every second.
constexpr size_t kMostDatasets = 200'000;
// Whoever has lost patience asks again, and what he asked first still waits.
constexpr size_t kMostAskers = 64;

Error too_many_ask(const std::string& name) {
  return {ErrorCode::kExhausted,
          fmt::format("dataset '{}': {} have asked and wait already: ask again later", name,
                      kMostAskers)};
}

std::string describe(const DatasetSource& source) {
  if (const auto* file = std::get_if<FileSource>(&source)) return "file " + file->path;
  if (const auto* zero = std::get_if<ZeroSource>(&source))
    return fmt::format("{} zero bytes", zero->bytes);
  const auto& random = std::get<RandomSource>(source);
  return fmt::format("{} random bytes, seed {}", random.bytes, random.seed);
}

Status check_request(const std::string& request_id, const std::string& name, uint32_t replicas) {
  if (replicas > kMostReplicas)
    return fail(ErrorCode::kInvalid,
                fmt::format("dataset '{}': {} replicas: at most {} nodes can keep a dataset", name,
                            replicas, kMostReplicas));
  if (request_id.size() > kMaxRequestIdBytes)
    return fail(
        ErrorCode::kInvalid,
        fmt::format("dataset '{}': its request id has {} bytes, at most {} are taken",
                    beginning(name, kMaxRequestIdBytes), request_id.size(), kMaxRequestIdBytes));
  if (!is_dataset_name(name))
    return fail(ErrorCode::kInvalid,
                fmt::format("'{}' is not a dataset name: use 1 to 128 letters, digits, '-', '_' or "
                            "'.', not starting with '.'",
                            name));
  if (parse_checkpoint_name(name))
    return fail(ErrorCode::kInvalid, fmt::format("'{}' is the name of a task's checkpoint", name));
  return {};
}

}  // namespace

Status DatasetAdmin::check_free(const std::string& name) const {
  if (state_.catalog.find(name))
    return fail(ErrorCode::kConflict, fmt::format("dataset '{}' exists already", name));
  if (making_.contains(name))
    return fail(ErrorCode::kConflict, fmt::format("dataset '{}' is just being made", name));
  if (state_.catalog.is_being_removed(name))
    return fail(ErrorCode::kConflict, fmt::format("dataset '{}' is just being removed", name));
  // Its version may be the new one's, with other bytes.
  if (const auto strays = state_.catalog.strays(name); !strays.empty())
    return fail(ErrorCode::kConflict,
                fmt::format("dataset '{}': node '{}' still holds one of that name that is in no "
                            "catalog: 'tierctl dataset remove {}' clears it",
                            name, *strays.begin(), name));
  if (state_.catalog.all().size() + making_.size() >= kMostDatasets)
    return fail(ErrorCode::kExhausted,
                fmt::format("dataset '{}': there are {} datasets, no more are taken: remove some "
                            "with 'tierctl dataset remove'",
                            name, state_.catalog.all().size()));
  return {};
}

Result<NodeRecord*> DatasetAdmin::choose_node(const std::string& wanted) {
  if (!wanted.empty()) {
    auto* node = state_.registry.find(wanted);
    if (!node) return fail(ErrorCode::kNotFound, fmt::format("node '{}' does not exist", wanted));
    if (!node->can_be_asked())
      return fail(ErrorCode::kUnavailable, fmt::format("node '{}' is not connected now", wanted));
    return node;
  }
  NodeRecord* best = nullptr;
  for (auto& [name, node] : state_.registry.all())
    if (node.can_be_asked() && (!best || node.slow_free_bytes > best->slow_free_bytes))
      best = &node;
  if (!best) return fail(ErrorCode::kUnavailable, "no node is connected that could take a dataset");
  return best;
}

void DatasetAdmin::add(const std::string& request_id, const std::string& name,
                       const DatasetSource& source, const std::string& wanted, Added added,
                       uint32_t replicas) {
  if (auto ok = check_request(request_id, name, replicas); !ok)
    return added(tl::unexpected(ok.error()));
  if (const auto* entry = state_.catalog.find(name);
      entry && !request_id.empty() && entry->dataset.request_id == request_id) {
    if (entry->dataset.origin == describe(source)) return answer_when_kept(entry->dataset, added);
    return added(fail(ErrorCode::kConflict,
                      fmt::format("dataset '{}': request id '{}' was used before to make it of {}: "
                                  "draw a new one",
                                  name, request_id, entry->dataset.origin)));
  }
  if (auto is_free = check_free(name); !is_free) return added(tl::unexpected(is_free.error()));
  auto node = choose_node(wanted);
  if (!node)
    return added(
        fail(node.error().code, fmt::format("dataset '{}': {}", name, node.error().message)));
  making_.insert(name);
  Dataset dataset;
  dataset.name = name;
  dataset.home = (*node)->facts.name;
  dataset.origin = describe(source);
  dataset.request_id = request_id;
  dataset.replicas = replicas > 0 ? replicas : state_.settings.replicas;
  // It was told to drop the one before on this connection: if it joins anew, it has the new one.
  const auto owed = state_.owed_drops.find(dataset.home);
  const bool was_owed = owed != state_.owed_drops.end() && owed->second.erase(name) > 0;
  (*node)->link->create_dataset(
      name, source,
      [this, node = dataset.home, instance = (*node)->facts.instance, dataset, was_owed,
       added = std::move(added)](Result<DatasetVersion> made) {
        const bool still_owed = !made && was_owed;
        if (still_owed) state_.owed_drops[node].insert(dataset.name);
        created(node, instance, dataset, std::move(made), added);
        // It may have joined anew meanwhile, and was not asked then.
        if (still_owed && !state_.catalog.find(dataset.name) && !making_.contains(dataset.name))
          drop(node, dataset.name);
      });
}

void DatasetAdmin::created(const std::string& node, uint64_t instance, Dataset dataset,
                           Result<DatasetVersion> made, Added added) {
  if (!made) {
    making_.erase(dataset.name);
    return added(tl::unexpected(made.error()));
  }
  dataset.bytes = made->bytes;
  dataset.version = made->version;
  dataset.digest = made->digest;
  // Drops of what had that name before would be paid with this one after a restart: what nodes
  // still have of that is told by its content.
  state_.store.write(
      [dataset](Db& db) -> Status {
        if (auto put = records::put_dataset(db, dataset); !put) return put;
        return records::clear_owed_drops_of(db, dataset.name);
      },
      [this, node, instance, dataset, added = std::move(added)](Status status) {
        making_.erase(dataset.name);
        if (!status) {
          drop(node, dataset.name);
          return added(tl::unexpected(status.error()));
        }
        for (auto& [name, owed] : state_.owed_drops) owed.erase(dataset.name);
        std::erase_if(state_.owed_drops, [](const auto& owed) { return owed.second.empty(); });
        auto& entry = state_.catalog.put(dataset);
        // Lost meanwhile, or to tell of it itself when it is back; another daemon that has taken
        // its place has told what there is.
        const auto* record = state_.registry.find(node);
        if (record && record->can_be_asked() && record->facts.instance == instance)
          entry.replicas[node] = {dataset.version, dataset.bytes, false, true, true,
                                  dataset.digest};
        answer_when_kept(dataset, added);
        available_();
      });
}

void DatasetAdmin::answer_when_kept(const Dataset& dataset, const Added& added) {
  if (dataset.replicas < 2 || !when_kept_) return added(dataset);
  if (adding_[dataset.name] >= kMostAskers)
    return added(tl::unexpected(too_many_ask(dataset.name)));
  ++adding_[dataset.name];
  when_kept_(dataset.current(), [this, dataset, added] {
    if (--adding_[dataset.name] == 0) adding_.erase(dataset.name);
    const auto* entry = state_.catalog.find(dataset.name);
    const bool is_same =
        entry && entry->dataset.request_id == dataset.request_id &&
        (entry->dataset.version > dataset.version || entry->dataset.digest == dataset.digest);
    if (is_same) return added(dataset);
    added(fail(ErrorCode::kConflict,
               fmt::format("dataset '{}' was made, and removed meanwhile", dataset.name)));
  });
}

void DatasetAdmin::drop(const std::string& node, const std::string& name) {
  auto* record = state_.registry.find(node);
  if (record && record->can_be_asked()) record->link->drop_dataset(name, UINT64_MAX);
}

void DatasetAdmin::remove(const std::string& name, Removed removed) {
  // It is gone once that is on disk.
  if (const auto known = removing_.find(name); known != removing_.end()) {
    if (known->second.size() >= kMostAskers) return removed(tl::unexpected(too_many_ask(name)));
    return known->second.push_back(std::move(removed));
  }
  const auto* entry = state_.catalog.find(name);
  if (!entry) {
    const auto strays =
        making_.contains(name) ? std::set<std::string>() : state_.catalog.strays(name);
    for (const auto& node : strays) drop(node, name);
    if (!strays.empty()) return removed({});
    return removed(fail(ErrorCode::kNotFound, fmt::format("dataset '{}' does not exist", name)));
  }
  if (!entry->users.empty())
    return removed(
        fail(ErrorCode::kConflict,
             fmt::format("dataset '{}': {} tasks that have not ended use it, the first is "
                         "{}: cancel them or wait",
                         name, entry->users.size(), *entry->users.begin())));
  std::set<std::string> owed = who_is_owed(*entry);
  state_.catalog.begin_removal(name);
  removing_[name].push_back(std::move(removed));
  // What nodes still have to drop is written with it, so that a crash right after forgets nothing.
  state_.store.write(
      [name, owed](Db& db) -> Status {
        for (const auto& node : owed)
          if (auto put = records::put_owed_drop(db, node, name); !put) return put;
        return records::remove_dataset(db, name);
      },
      [this, name, owed](const Status& status) {
        state_.catalog.end_removal(name, status.has_value());
        if (status)
          drop_everywhere(name, owed);
        else
          available_();
        const auto waiting = removing_.extract(name);
        for (const auto& removed : waiting.mapped()) removed(status);
      });
}

std::set<std::string> DatasetAdmin::who_is_owed(const Catalog::Entry& entry) const {
  std::set<std::string> owed;
  // Checkpoints come and go as jobs like, and a node that is away for good would be owed them all.
  // One that is back tells of what it has, and its name says whose it is: see Checkpoints::found().
  if (parse_checkpoint_name(entry.dataset.name)) return owed;
  for (const auto& [node, replica] : entry.replicas) owed.insert(node);
  for (const auto& [node, versions] : entry.discarded) owed.insert(node);
  owed.insert(entry.outdated.begin(), entry.outdated.end());
  if (entry.on_disk)
    for (const auto& [node, replica] : entry.on_disk->replicas) owed.insert(node);
  for (const auto& node : state_.registry.slots().names()) {
    const auto* record = state_.registry.find(node);
    if (!record || !record->can_be_asked()) owed.insert(node);
  }
  return owed;
}

void DatasetAdmin::drop_everywhere(const std::string& name, const std::set<std::string>& owed) {
  for (const auto& node : state_.registry.slots().names()) drop(node, name);
  // Until the node says that it has it no more: what was sent may be lost with its connection.
  for (const auto& node : owed) state_.owed_drops[node].insert(name);
}

}  // namespace tierpilot
