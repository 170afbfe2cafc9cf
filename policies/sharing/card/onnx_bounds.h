// Bounds to what shape inference makes of a hostile ONNX model.
#pragma once

#include <onnx/defs/schema.h>

#include <memory>
#include <unordered_map>

namespace tierpilot::sharing {

// ONNX's operators. Inference stays away from values of too many dimensions, from sizes that
// may overflow and from too long lists of sizes, which a file of a few hundred bytes could double
// at each operator; and from bodies once the names that it copies for each are too many.
class BoundedSchemas final : public onnx::ISchemaRegistry {
 public:
  explicit BoundedSchemas(const onnx::GraphProto& graph);

  const onnx::OpSchema* GetSchema(const std::string& key, int most_version,
                                  const std::string& domain) const override;

 private:
  void bound_shapes(const onnx::OpSchema& schema, onnx::OpSchema& bounded) const;

  const double names_;
  mutable double copied_ = 0;
  mutable std::unordered_map<const onnx::OpSchema*, std::unique_ptr<onnx::OpSchema>> bounded_;
};

}  // namespace tierpilot::sharing
