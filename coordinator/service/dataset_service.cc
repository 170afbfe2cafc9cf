#include "coordinator/service/dataset_service.h"

#include <fmt/format.h>

#include <algorithm>

#include "coordinator/service/wire.h"
#include "rpc/error.h"

namespace tierpilot {
namespace {

constexpr uint32_t kMostDatasets = 500;

}  // namespace

kj::Promise<void> DatasetService::datasetAdd(DatasetAddContext context) {
  caller_->allow_change(Role::kSubmit,
                        fmt::format("add dataset '{}'", text(context.getParams().getName())));
  const auto params = context.getParams();
  auto source = value_or_throw(read_source(params.getSource()));
  auto paf = kj::newPromiseAndFulfiller<void>();
  auto fulfiller = std::make_shared<kj::Own<kj::PromiseFulfiller<void>>>(kj::mv(paf.fulfiller));
  caller_->core().datasets.add(
      text(params.getRequestId()), text(params.getName()), source, text(params.getNode()),
      [this, context, fulfiller](Result<Dataset> made) mutable {
        if (!made) return (*fulfiller)->reject(to_exception(made.error()));
        if (const auto* entry = caller_->core().state.catalog.find(made->name))
          write_dataset(*entry, context.getResults().initDataset());
        (*fulfiller)->fulfill();
      },
      params.getReplicas());
  return kj::mv(paf.promise);
}

kj::Promise<void> DatasetService::datasetList(DatasetListContext context) {
  caller_->allow_reading();
  const auto params = context.getParams();
  const uint32_t limit =
      params.getLimit() ? std::min(params.getLimit(), kMostDatasets) : kMostDatasets;
  const auto& catalog = caller_->core().state.catalog;
  std::vector<const Catalog::Entry*> page;
  size_t bytes = 0;
  for (const auto* entry = catalog.next_told(text(params.getAfter()));
       entry && page.size() < limit && bytes < kPageBytes;
       entry = catalog.next_told(entry->dataset.name)) {
    page.push_back(entry);
    bytes += wire_size(*entry);
  }
  auto out = context.getResults().initDatasets(count(page));
  for (unsigned i = 0; i < out.size(); ++i) write_dataset(*page[i], out[i]);
  return kj::READY_NOW;
}

kj::Promise<void> DatasetService::datasetShow(DatasetShowContext context) {
  caller_->allow_reading();
  const auto name = text(context.getParams().getName());
  const auto* entry = caller_->core().state.catalog.told(name);
  if (!entry) refuse(ErrorCode::kNotFound, fmt::format("dataset '{}' does not exist", name));
  write_dataset(*entry, context.getResults().initDataset());
  return kj::READY_NOW;
}

kj::Promise<void> DatasetService::datasetCheck(DatasetCheckContext context) {
  const auto checked = context.getParams();
  caller_->allow_change(checked.getRepair() ? Role::kOperate : Role::kSubmit,
                        fmt::format("{} dataset '{}'", checked.getRepair() ? "repair" : "verify",
                                    text(checked.getName())));
  const auto params = context.getParams();
  auto paf = kj::newPromiseAndFulfiller<void>();
  auto fulfiller = std::make_shared<kj::Own<kj::PromiseFulfiller<void>>>(kj::mv(paf.fulfiller));
  if (params.getRepair()) caller_->core().replicator.hurry(text(params.getName()));
  caller_->core().checker.check(text(params.getName()), params.getRepair(),
                                [context, fulfiller](Result<DatasetCheck> check) mutable {
                                  if (!check)
                                    return (*fulfiller)->reject(to_exception(check.error()));
                                  write_check(*check, context.getResults().initCheck());
                                  (*fulfiller)->fulfill();
                                });
  return kj::mv(paf.promise);
}

kj::Promise<void> DatasetService::datasetRemove(DatasetRemoveContext context) {
  caller_->allow_change(Role::kOperate,
                        fmt::format("remove dataset '{}'", text(context.getParams().getName())));
  auto paf = kj::newPromiseAndFulfiller<void>();
  auto fulfiller = std::make_shared<kj::Own<kj::PromiseFulfiller<void>>>(kj::mv(paf.fulfiller));
  caller_->core().datasets.remove(text(context.getParams().getName()), [fulfiller](Status status) {
    if (status)
      (*fulfiller)->fulfill();
    else
      (*fulfiller)->reject(to_exception(status.error()));
  });
  return kj::mv(paf.promise);
}

}  // namespace tierpilot
