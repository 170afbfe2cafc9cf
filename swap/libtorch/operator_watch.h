// Which operators run on a thread and what they read: whether they could run again and give the
// same, and whether they did.
#pragma once

#include <ATen/core/Tensor.h>
#include <ATen/record_function.h>

#include <cstdint>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "swap/libtorch/hash.h"

namespace tierpilot::swap::libtorch {

// What ran.
struct Operation {
  struct Read {
    c10::weak_intrusive_ptr<c10::TensorImpl, c10::UndefinedTensorImpl> tensor;
    uint32_t version;
    const void* data;  // where it lay: one that is set anew has another place and no other version
  };

  // Throws where what was read has been changed since.
  void check_unchanged() const;
  // Whether `again` did the same, with the same tensors.
  bool same_as(const Operation& again) const;

  uint64_t operators = 0;      // a hash of their names, numbers and shapes
  std::vector<Read> read{};    // tensors that were there before it and still are, but its own
  std::string unrepeatable{};  // why to run it again gives something else; empty: it does not
};

// From its making until `end`, on one thread. Where several stand the innermost counts.
class OperatorWatch {
 public:
  // `own`: tensors that it is given; `counted`: those of its module that norms may change, which
  // are as before when it runs again.
  OperatorWatch(const std::vector<at::Tensor>& own, const std::vector<at::Tensor>& counted);
  ~OperatorWatch();
  OperatorWatch(const OperatorWatch&) = delete;
  OperatorWatch& operator=(const OperatorWatch&) = delete;

  Operation end();

 private:
  enum class Origin : uint8_t { kOwn, kCounted, kRead, kMade };

  static std::unique_ptr<at::ObserverContext> began(const at::RecordFunction& function);
  static void ended(const at::RecordFunction& function, at::ObserverContext*);

  void begin(const at::RecordFunction& function);
  void see_norm(c10::ArrayRef<const c10::IValue> inputs);
  void see(const c10::IValue& input);
  void see(const at::Tensor& tensor);
  void see_complex(const c10::complex<double>& number);
  void know(const c10::IValue& made);

  const at::RecordFunctionGuard watching_{true};
  OperatorWatch* const outer_;
  at::CallbackHandle handle_ = 0;
  int depth_ = 0;  // of operators within operators
  Hash operators_;
  std::unordered_map<const c10::TensorImpl*, Origin> known_;
  Operation operation_;
};

}  // namespace tierpilot::swap::libtorch
