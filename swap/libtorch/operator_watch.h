// Which operators run on a thread and what they read: whether they could run again and give the
// same, and whether they did.
#pragma once

#include <ATen/core/Tensor.h>
#include <ATen/record_function.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "swap/libtorch/hash.h"

namespace tierpilot::swap::libtorch {

using WeakTensor = c10::weak_intrusive_ptr<c10::TensorImpl, c10::UndefinedTensorImpl>;

// What ran.
struct Operation {
  struct Read {
    WeakTensor tensor;
    uint32_t version;
    const void* data;  // where it lay: one that is set anew has another place and no other version
  };
  // A block may have the tensor also by itself.
  struct Input {
    WeakTensor tensor;
    uint32_t version = 0;
    uint64_t number = 0;         // of the first input that is this tensor
    const void* data = nullptr;  // likewise
  };

  // Throws where what was read has been changed since.
  void check_unchanged() const;
  // Whether `again` did the same, with the same tensors.
  bool same_as(const Operation& again) const;

  uint64_t operators = 0;       // a hash of their names and all that they took
  std::vector<Read> read{};     // tensors that were there before it and still are, but its own
  std::vector<Input> inputs{};  // defined ones
  std::string unrepeatable{};   // why to run it again gives something else; empty: it does not
};

// Somebody else may write to it, which no operator and no version tells of.
bool is_others_memory(const at::Tensor& tensor);

// From its making until `end`, on one thread. Where several stand the innermost counts.
class OperatorWatch {
 public:
  // `counted`: tensors of its module that norms may change, and that are as before when it runs
  // again.
  OperatorWatch(const std::vector<at::Tensor>& inputs, const std::vector<at::Tensor>& counted);
  // What ran as `forward` is to run again with the same inputs.
  OperatorWatch(const std::vector<at::Tensor>& inputs, const std::vector<at::Tensor>& counted,
                const Operation& forward);
  ~OperatorWatch();
  OperatorWatch(const OperatorWatch&) = delete;
  OperatorWatch& operator=(const OperatorWatch&) = delete;

  Operation end();

 private:
  enum class Origin : uint8_t { kOwn, kCounted, kRead, kMade };
  struct Known {
    WeakTensor tensor;                  // its address is nobody else's while this is there
    uint64_t number;                    // in the order in which tensors turned up
    std::optional<uint32_t> version{};  // that it is to have
  };

  static std::unique_ptr<at::ObserverContext> began(const at::RecordFunction& function);
  static void ended(const at::RecordFunction& function, at::ObserverContext*);

  void watch();
  void begin(const at::RecordFunction& function);
  // `running_mean` and so on of a normalisation.
  void see_norm(c10::ArrayRef<const c10::IValue> inputs);
  Origin origin_of(const at::Tensor& tensor) const;
  void see(const c10::IValue& input);
  void see(const at::Tensor& tensor);
  void see_complex(const c10::complex<double>& number);
  void take(const at::Tensor& tensor, Origin origin);
  void know(const c10::IValue& made);

  const at::RecordFunctionGuard watching_{true};
  OperatorWatch* const outer_;
  at::CallbackHandle handle_ = 0;
  int depth_ = 0;  // of operators within operators
  Hash operators_;
  uint64_t next_number_ = 0;
  std::unordered_map<const c10::TensorImpl*, Known> known_;
  std::unordered_map<const c10::StorageImpl*, Origin> storages_;  // of what was not made within
  Operation operation_;
};

}  // namespace tierpilot::swap::libtorch
