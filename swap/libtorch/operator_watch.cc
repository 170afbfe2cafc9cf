#include "swap/libtorch/operator_watch.h"

#include <ATen/CPUGeneratorImpl.h>
#include <c10/core/CPUAllocator.h>

#include <algorithm>
#include <bit>
#include <string_view>
#include <unordered_set>
#include <utility>

#include "swap/libtorch/stored.h"

namespace tierpilot::swap::libtorch {
namespace {

thread_local OperatorWatch* current = nullptr;

uint32_t version_of(c10::TensorImpl& tensor) {
  return tensor.is_inference() ? 0 : tensor.version_counter().current_version();
}

const void* data_of(const c10::TensorImpl& tensor) {
  return tensor.has_storage() ? tensor.storage().data() : nullptr;
}

// Arguments of batch_norm, instance_norm and what does them.
constexpr size_t kMean = 3, kCounts = 5, kMomentum = 6;

// In place of an argument's value.
enum class Told : uint64_t { kAbsent = 1, kUndefined, kTensor, kList, kDevice, kStale };

uint64_t told(Told what) {
  return static_cast<uint64_t>(what);
}

WeakTensor weak(const at::Tensor& tensor) {
  return WeakTensor(tensor.getIntrusivePtr());
}

}  // namespace

// One that is gone nobody has set anew.
void Operation::check_unchanged() const {
  constexpr const char* kSetAnew =
      "tierpilot::swap: a tensor that a segment read was set anew since, which changes its "
      "gradients: do so after the backward pass, or train without recompute";
  for (const auto& [weak, version, number, data] : inputs) {
    const auto tensor = weak.lock();
    TORCH_CHECK(!tensor || data == data_of(*tensor), kSetAnew);
  }
  for (const auto& [weak, version, data] : read) {
    const auto tensor = weak.lock();
    TORCH_CHECK(tensor,
                "tierpilot::swap: a tensor that a segment read beside its inputs is gone: "
                "keep it until the backward pass, or train without recompute");
    check_version(version, version_of(*tensor));
    TORCH_CHECK(data == data_of(*tensor), kSetAnew);
  }
}

bool Operation::same_as(const Operation& again) const {
  if (operators != again.operators) return false;
  std::unordered_set<const c10::TensorImpl*> seen;
  for (const auto& each : again.read) seen.insert(each.tensor._unsafe_get_target());
  for (const auto& each : read)
    if (!seen.contains(each.tensor._unsafe_get_target())) return false;
  return true;
}

// What torch::load has made is not resizable, and by torch's allocator all the same.
bool is_others_memory(const at::Tensor& tensor) {
  if (!tensor.has_storage() || tensor.storage().nbytes() == 0 || tensor.storage().resizable())
    return false;
  const auto deleter = tensor.storage().data_ptr().get_deleter();
  return deleter != c10::GetDefaultCPUAllocator()->raw_deleter() &&
         deleter != c10::GetAllocator(c10::DeviceType::CPU)->raw_deleter();
}

OperatorWatch::OperatorWatch(const std::vector<at::Tensor>& inputs,
                             const std::vector<at::Tensor>& counted)
    : outer_(std::exchange(current, this)) {
  for (const auto& input : inputs) {
    if (!input.defined()) continue;
    take(input, Origin::kOwn);
    auto* const impl = input.unsafeGetTensorImpl();
    operation_.inputs.push_back(
        {weak(input), version_of(*impl), known_.at(impl).number, data_of(*impl)});
  }
  for (const auto& tensor : counted) take(tensor, Origin::kCounted);
  watch();
}

OperatorWatch::OperatorWatch(const std::vector<at::Tensor>& inputs,
                             const std::vector<at::Tensor>& counted, const Operation& forward)
    : outer_(std::exchange(current, this)) {
  size_t at = 0;
  for (const auto& input : inputs) {
    if (!input.defined()) continue;
    const auto& then = forward.inputs[at++];
    if (const auto original = then.tensor.lock()) {
      known_.try_emplace(original.get(), Known{then.tensor, then.number, then.version});
      storages_.try_emplace(original->storage().unsafeGetStorageImpl(), Origin::kOwn);
    }
    known_.try_emplace(input.unsafeGetTensorImpl(), Known{weak(input), then.number});
    storages_.try_emplace(input.storage().unsafeGetStorageImpl(), Origin::kOwn);
    next_number_ = std::max(next_number_, then.number + 1);
  }
  for (const auto& tensor : counted) take(tensor, Origin::kCounted);
  watch();
}

// An outer one's callback is there.
void OperatorWatch::watch() {
  if (outer_) return;
  handle_ = at::addThreadLocalCallback(
      at::RecordFunctionCallback(&began, &ended)
          .needsInputs(true)
          .needsOutputs(true)
          .scopes({at::RecordScope::FUNCTION, at::RecordScope::BACKWARD_FUNCTION}));
}

// A number as the first input has where it is taken twice.
void OperatorWatch::take(const at::Tensor& tensor, Origin origin) {
  if (known_.try_emplace(tensor.unsafeGetTensorImpl(), Known{weak(tensor), next_number_}).second)
    ++next_number_;
  if (tensor.has_storage()) storages_.try_emplace(tensor.storage().unsafeGetStorageImpl(), origin);
}

OperatorWatch::~OperatorWatch() {
  current = outer_;
  if (!outer_) at::removeCallback(handle_);
}

Operation OperatorWatch::end() {
  operation_.operators = operators_.value();
  // What is gone was made within, by other means than operators.
  std::erase_if(operation_.read, [](const auto& each) { return each.tensor.expired(); });
  for (const auto& [weak, version, data] : operation_.read)
    if (const auto tensor = weak.lock();
        tensor && (version_of(*tensor) != version || data_of(*tensor) != data))
      operation_.unrepeatable = "it changes a tensor that it reads";
  return std::exchange(operation_, {});
}

std::unique_ptr<at::ObserverContext> OperatorWatch::began(const at::RecordFunction& function) {
  if (current && current->depth_++ == 0) current->begin(function);
  return nullptr;
}

void OperatorWatch::ended(const at::RecordFunction& function, at::ObserverContext*) {
  if (!current || --current->depth_ > 0) return;
  for (const auto& made : function.outputs()) current->know(made);
}

void OperatorWatch::begin(const at::RecordFunction& function) {
  if (function.scope() == at::RecordScope::BACKWARD_FUNCTION) {
    operation_.unrepeatable = "it runs a backward pass of its own";
    return;
  }
  const std::string_view name = function.name();
  operators_.add(name);
  const auto inputs = function.inputs();
  if (name.ends_with("batch_norm") || name.ends_with("instance_norm")) return see_norm(inputs);
  operators_.add(inputs.size());
  for (const auto& input : inputs) see(input);
}

// It counts running means, which changes no version. Of those of a known module the momentum may
// follow from how often it has run.
void OperatorWatch::see_norm(c10::ArrayRef<const c10::IValue> inputs) {
  const bool has_means =
      inputs.size() > kCounts && inputs[kMean].isTensor() && inputs[kMean].toTensor().defined();
  const auto origin = has_means ? origin_of(inputs[kMean].toTensor()) : Origin::kMade;
  if (has_means && inputs[kCounts].isBool() && inputs[kCounts].toBool() &&
      (origin == Origin::kOwn || origin == Origin::kRead))
    operation_.unrepeatable = "it counts running means of a module that is not known";
  for (size_t i = 0; i < inputs.size(); ++i)
    if (i != kMomentum || origin != Origin::kCounted) see(inputs[i]);
}

// Also of views.
OperatorWatch::Origin OperatorWatch::origin_of(const at::Tensor& tensor) const {
  if (!tensor.has_storage()) return Origin::kMade;
  const auto found = storages_.find(tensor.storage().unsafeGetStorageImpl());
  if (found != storages_.end()) return found->second;
  return known_.contains(tensor.unsafeGetTensorImpl()) ? Origin::kMade : Origin::kRead;
}

// All that it takes tells of what follows from more than tensors: numbers, words, what is left out.
void OperatorWatch::see(const c10::IValue& input) {
  if (input.isTensor()) {
    see(input.toTensor());
  } else if (input.isList()) {
    operators_.add(told(Told::kList)).add(input.toListRef().size());
    for (const auto& each : input.toListRef()) see(each);
  } else if (input.isNone()) {
    operators_.add(told(Told::kAbsent));
  } else if (input.isGenerator()) {
    if (input.toGenerator() != at::detail::getDefaultCPUGenerator())
      operation_.unrepeatable = "it draws random numbers of its own";
  } else if (input.isDouble()) {
    operators_.add(std::bit_cast<uint64_t>(input.toDouble()));
  } else if (input.isInt()) {
    operators_.add(static_cast<uint64_t>(input.toInt()));
  } else if (input.isBool()) {
    operators_.add(input.toBool() ? 1 : 2);
  } else if (input.isString()) {
    operators_.add(input.toStringRef().size()).add(std::string_view(input.toStringRef()));
  } else if (input.isComplexDouble()) {
    see_complex(input.toComplexDouble());
  } else if (input.isDevice()) {
    const auto device = input.toDevice();
    operators_.add(told(Told::kDevice)).add(static_cast<uint64_t>(device.type()));
    operators_.add(static_cast<uint64_t>(device.index()));
  }
}

void OperatorWatch::see_complex(const c10::complex<double>& number) {
  operators_.add(std::bit_cast<uint64_t>(number.real()));
  operators_.add(std::bit_cast<uint64_t>(number.imag()));
}

void OperatorWatch::see(const at::Tensor& tensor) {
  if (!tensor.defined()) {
    operators_.add(told(Told::kUndefined));
    return;
  }
  operators_.add(told(Told::kTensor));
  if (!tensor.is_nested())
    for (const auto size : tensor.sizes()) operators_.add(static_cast<uint64_t>(size));
  if (!tensor.device().is_cpu()) operation_.unrepeatable = "it computes on another device";
  auto* const impl = tensor.unsafeGetTensorImpl();
  if (!known_.contains(impl)) {
    take(tensor, Origin::kRead);
    if (is_others_memory(tensor)) operation_.unrepeatable = "it reads memory that is not torch's";
    operation_.read.push_back(
        {.tensor = weak(tensor), .version = version_of(*impl), .data = data_of(*impl)});
  }
  const auto& known = known_.at(impl);
  operators_.add(known.number);
  if (known.version && *known.version != version_of(*impl)) operators_.add(told(Told::kStale));
}

void OperatorWatch::know(const c10::IValue& made) {
  if (made.isTensor() && made.toTensor().defined()) {
    const auto& tensor = made.toTensor();
    if (known_.try_emplace(tensor.unsafeGetTensorImpl(), Known{weak(tensor), next_number_}).second)
      ++next_number_;
  } else if (made.isList()) {
    for (const auto& each : made.toListRef()) know(each);
  }
}

}  // namespace tierpilot::swap::libtorch
