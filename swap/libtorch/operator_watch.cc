#include "swap/libtorch/operator_watch.h"

#include <ATen/CPUGeneratorImpl.h>

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

// Of a norm, what follows from how often it has run.
constexpr size_t kMomentum = 6;

}  // namespace

void Operation::check_unchanged() const {
  for (const auto& [weak, version, data] : read) {
    const auto tensor = weak.lock();
    TORCH_CHECK(tensor,
                "tierpilot::swap: a tensor that a segment read beside its inputs is gone: "
                "keep it until the backward pass, or train without recompute");
    check_version(version, version_of(*tensor));
    TORCH_CHECK(
        data == data_of(*tensor),
        "tierpilot::swap: a tensor that a segment read was set anew since, which changes its "
        "gradients: do so after the backward pass, or train without recompute");
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

OperatorWatch::OperatorWatch(const std::vector<at::Tensor>& own,
                             const std::vector<at::Tensor>& counted)
    : outer_(std::exchange(current, this)) {
  for (const auto& tensor : counted) known_.emplace(tensor.unsafeGetTensorImpl(), Origin::kCounted);
  for (const auto& tensor : own) known_.emplace(tensor.unsafeGetTensorImpl(), Origin::kOwn);
  if (outer_) return;  // its callback is there
  handle_ = at::addThreadLocalCallback(
      at::RecordFunctionCallback(&began, &ended)
          .needsInputs(true)
          .needsOutputs(true)
          .scopes({at::RecordScope::FUNCTION, at::RecordScope::BACKWARD_FUNCTION}));
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
  const bool norm = name.ends_with("batch_norm") || name.ends_with("instance_norm");
  const auto inputs = function.inputs();
  for (size_t i = 0; i < inputs.size(); ++i)
    if (!norm || i != kMomentum) see(inputs[i]);
  if (norm) see_norm(inputs);
}

// It counts running means, which changes no version.
void OperatorWatch::see_norm(c10::ArrayRef<const c10::IValue> inputs) {
  constexpr size_t kMean = 3, kCounts = 5;
  if (inputs.size() <= kCounts || !inputs[kMean].isTensor() || !inputs[kCounts].isBool()) return;
  const auto found = known_.find(inputs[kMean].toTensor().unsafeGetTensorImpl());
  if (inputs[kCounts].toBool() && found != known_.end() && found->second != Origin::kMade &&
      found->second != Origin::kCounted)
    operation_.unrepeatable = "it counts running means of a module that is not known";
}

// Numbers and words tell of what follows from more than tensors, such as modes.
void OperatorWatch::see(const c10::IValue& input) {
  if (input.isTensor())
    see(input.toTensor());
  else if (input.isList())
    for (const auto& each : input.toListRef()) see(each);
  else if (input.isGenerator() && input.toGenerator() != at::detail::getDefaultCPUGenerator())
    operation_.unrepeatable = "it draws random numbers of its own";
  else if (input.isDouble())
    operators_.add(std::bit_cast<uint64_t>(input.toDouble()));
  else if (input.isInt())
    operators_.add(static_cast<uint64_t>(input.toInt()));
  else if (input.isBool())
    operators_.add(input.toBool() ? 1 : 2);
  else if (input.isString())
    operators_.add(std::string_view(input.toStringRef()));
  else if (input.isComplexDouble())
    see_complex(input.toComplexDouble());
}

void OperatorWatch::see_complex(const c10::complex<double>& number) {
  operators_.add(std::bit_cast<uint64_t>(number.real()));
  operators_.add(std::bit_cast<uint64_t>(number.imag()));
}

void OperatorWatch::see(const at::Tensor& tensor) {
  if (!tensor.defined()) return;
  if (!tensor.is_nested())
    for (const auto size : tensor.sizes()) operators_.add(static_cast<uint64_t>(size));
  if (!tensor.device().is_cpu()) operation_.unrepeatable = "it computes on another device";
  auto* const impl = tensor.unsafeGetTensorImpl();
  if (known_.emplace(impl, Origin::kRead).second)
    operation_.read.push_back(
        {.tensor = decltype(Operation::Read::tensor)(tensor.getIntrusivePtr()),
         .version = version_of(*impl),
         .data = data_of(*impl)});
}

void OperatorWatch::know(const c10::IValue& made) {
  if (made.isTensor() && made.toTensor().defined())
    known_.emplace(made.toTensor().unsafeGetTensorImpl(), Origin::kMade);
  else if (made.isList())
    for (const auto& each : made.toListRef()) know(each);
}

}  // namespace tierpilot::swap::libtorch
