#include "daemon/memory/pool/requests.h"

#include <fmt/format.h>

#include "daemon/memory/pool/names.h"

namespace tierpilot {
namespace {

Status check_items(const std::vector<ServeItem>& items) {
  std::set<std::string> names;
  for (const auto& item : items) {
    if (auto status = check_dataset_id(item.id()); !status) return status;
    if (!names.insert(item.name).second)
      return fail(ErrorCode::kInvalid,
                  fmt::format("dataset '{}' is named twice in one request", item.name));
  }
  return {};
}

}  // namespace

Status Requests::accept(const std::shared_ptr<Request>& request) {
  if (auto status = check_owner(request->owner); !status) return status;
  if (auto status = check_items(request->items); !status) return status;
  if (by_owner_.contains(request->owner))
    return fail(ErrorCode::kConflict,
                fmt::format("owner '{}' holds datasets or waits for some already: finish it first",
                            request->owner));
  for (const auto& item : request->items)
    if (item.write && written_.contains(item.name))
      return fail(ErrorCode::kConflict,
                  fmt::format("dataset '{}' is being written on this node already", item.name));
  for (const auto& item : request->items)
    if (item.write) written_.insert(item.name);
  by_owner_[request->owner] = request;
  return {};
}

void Requests::erase(const std::shared_ptr<Request>& request) {
  for (const auto& item : request->items)
    if (item.write) written_.erase(item.name);
  by_owner_.erase(request->owner);
  std::erase(waiting, request);
}

std::shared_ptr<Request> Requests::find(const std::string& owner) const {
  const auto it = by_owner_.find(owner);
  return it == by_owner_.end() ? nullptr : it->second;
}

}  // namespace tierpilot
