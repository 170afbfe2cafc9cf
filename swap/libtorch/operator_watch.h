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
  // `own`: tensors that it is given, and such as may change.
  explicit OperatorWatch(const std::vector<at::Tensor>& own);
  ~OperatorWatch();
  OperatorWatch(const OperatorWatch&) = delete;
  OperatorWatch& operator=(const OperatorWatch&) = delete;

  Operation end();

 private:
  enum class Origin : uint8_t { kOwn, kRead, kMade };

  static std::unique_ptr<at::ObserverContext> began(const at::RecordFunction& function);
  static void ended(const at::RecordFunction& function, at::ObserverContext*);

  void begin(const at::RecordFunction& function);
  void see_norm(c10::ArrayRef<const c10::IValue> inputs);
  void see(const c10::IValue& input, bool numbers);
  void see(const at::Tensor& tensor);
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
