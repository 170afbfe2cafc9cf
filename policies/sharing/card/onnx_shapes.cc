#include "policies/sharing/card/onnx_shapes.h"

#include <onnx/defs/tensor_proto_util.h>
#include <onnx/shape_inference/implementation.h>

#include <algorithm>
#include <cstdint>
#include <optional>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "policies/sharing/card/onnx_bounds.h"

namespace tierpilot::sharing {
namespace {

constexpr int64_t kUsualOpset = 13;
constexpr int kMostRounds = 12;  // of sizes that are computed from sizes
constexpr int kMostValues = 64;  // of a size
constexpr int kMostKept = 4096;  // values, or bytes of them
constexpr int64_t kMostSize = int64_t{1} << 31;

using Data = std::unordered_map<std::string, onnx::TensorShapeProto>;
using Whole = std::vector<int64_t>;

using Domains = std::unordered_set<std::string>;

void import_domains(const onnx::GraphProto& graph, onnx::ModelProto& model, Domains& imported) {
  for (const auto& node : graph.node()) {
    if (imported.insert(node.domain()).second) {
      auto* opset = model.add_opset_import();
      opset->set_domain(node.domain());
      opset->set_version(node.domain().empty() ? kUsualOpset : 1);
    }
    for (const auto& attribute : node.attribute())
      if (attribute.has_g()) import_domains(attribute.g(), model, imported);
  }
}

// Inference gives up on a model that does not say which operators of a domain it means.
void import_domains(onnx::ModelProto& model) {
  Domains imported;
  for (const auto& opset : model.opset_import()) imported.insert(opset.domain());
  import_domains(model.graph(), model, imported);
}

bool has_body(const onnx::NodeProto& node) {
  return std::any_of(node.attribute().begin(), node.attribute().end(),
                     [](const auto& attribute) { return attribute.has_g(); });
}

bool is_small(const onnx::TensorProto& tensor) {
  return tensor.data_type() == onnx::TensorProto::INT64 && tensor.data_location() == 0 &&
         (tensor.dims_size() == 0 || (tensor.dims_size() == 1 && tensor.dims(0) <= kMostValues));
}

bool fit(int64_t a, int64_t b) {
  const auto fits = [](int64_t size) { return size > -kMostSize && size < kMostSize; };
  return fits(a) && fits(b);
}

// Of whole numbers, a quotient towards zero; nothing where a size cannot be that.
using Operation = std::optional<int64_t> (*)(int64_t, int64_t);

Operation operation_of(const std::string& name) {
  using Answer = std::optional<int64_t>;
  if (name == "Add")
    return [](int64_t a, int64_t b) { return fit(a, b) ? Answer(a + b) : Answer(); };
  if (name == "Sub")
    return [](int64_t a, int64_t b) { return fit(a, b) ? Answer(a - b) : Answer(); };
  if (name == "Mul")
    return [](int64_t a, int64_t b) { return fit(a, b) ? Answer(a * b) : Answer(); };
  if (name == "Div")
    return [](int64_t a, int64_t b) { return fit(a, b) && b != 0 ? Answer(a / b) : Answer(); };
  return nullptr;
}

// Values that ONNX's inference could use if they were constants: it propagates some operators only,
// and the bounds of a slice it takes from constants alone.
class Sizes {
 public:
  Sizes(const onnx::GraphProto& inferred, const Data& data) : data_(data) {
    for (const auto& tensor : inferred.initializer()) add_constant(tensor.name(), tensor);
    for (const auto& node : inferred.node())
      if (node.op_type() == "Constant" && node.output_size() == 1)
        for (const auto& attribute : node.attribute())
          if (attribute.name() == "value") add_constant(node.output(0), attribute.t());
    for (const auto& info : inferred.value_info()) types_[info.name()] = &info.type().tensor_type();
  }

  // Nothing where one is not known; the tensor is a constant with its values.
  std::optional<onnx::TensorProto> made_by(const onnx::NodeProto& node) const {
    if (node.output_size() != 1 || node.op_type() == "Constant" || !node.domain().empty() ||
        has_body(node))
      return std::nullopt;
    const auto type = types_.find(node.output(0));
    if (type == types_.end() || type->second->elem_type() != onnx::TensorProto::INT64 ||
        !type->second->has_shape() || type->second->shape().dim_size() > 1)
      return std::nullopt;
    const auto values = computed(node);
    const bool is_list = type->second->shape().dim_size() == 1;
    if (!values || (!is_list && values->size() != 1)) return std::nullopt;
    onnx::TensorProto tensor;
    tensor.set_data_type(onnx::TensorProto::INT64);
    if (is_list) tensor.add_dims(static_cast<int64_t>(values->size()));
    for (const auto value : *values) tensor.add_int64_data(value);
    return tensor;
  }

 private:
  void add_constant(const std::string& name, const onnx::TensorProto& tensor) {
    if (is_small(tensor)) constants_[name] = onnx::ParseData<int64_t>(&tensor);
  }
  std::optional<Whole> known(const std::string& name) const {
    if (const auto constant = constants_.find(name); constant != constants_.end())
      return constant->second;
    const auto found = data_.find(name);
    if (found == data_.end() || found->second.dim_size() > kMostValues) return std::nullopt;
    Whole values;
    for (const auto& dim : found->second.dim()) {
      if (!dim.has_dim_value()) return std::nullopt;
      values.push_back(dim.dim_value());
    }
    return values;
  }
  std::optional<Whole> computed(const onnx::NodeProto& node) const {
    const auto operation = operation_of(node.op_type());
    if (!operation || node.input_size() != 2) return known(node.output(0));
    const auto left = known(node.input(0)), right = known(node.input(1));
    if (!left || !right || left->empty() || right->empty()) return std::nullopt;
    Whole values(std::max(left->size(), right->size()));
    if ((left->size() != 1 && left->size() != values.size()) ||
        (right->size() != 1 && right->size() != values.size()))
      return std::nullopt;
    for (size_t i = 0; i < values.size(); ++i) {
      const auto value =
          operation((*left)[left->size() == 1 ? 0 : i], (*right)[right->size() == 1 ? 0 : i]);
      if (!value) return std::nullopt;
      values[i] = *value;
    }
    return values;
  }

  const Data& data_;
  std::unordered_map<std::string, Whole> constants_;
  std::unordered_map<std::string, const onnx::TypeProto_Tensor*> types_;
};

void drop_values(onnx::TensorProto& tensor) {
  if (tensor.raw_data().size() > size_t{kMostKept}) tensor.clear_raw_data();
  if (tensor.float_data_size() > kMostKept) tensor.clear_float_data();
  if (tensor.double_data_size() > kMostKept) tensor.clear_double_data();
  if (tensor.int32_data_size() > kMostKept) tensor.clear_int32_data();
}

void drop_values(onnx::SparseTensorProto& tensor) {
  drop_values(*tensor.mutable_values());
  tensor.clear_indices();
}

// Of weights only sizes matter, and models are copied below.
void drop_weights(onnx::GraphProto& graph) {
  for (auto& tensor : *graph.mutable_initializer()) drop_values(tensor);
  for (auto& tensor : *graph.mutable_sparse_initializer()) drop_values(tensor);
  for (auto& node : *graph.mutable_node())
    for (auto& attribute : *node.mutable_attribute()) {
      if (attribute.has_t()) drop_values(*attribute.mutable_t());
      if (attribute.has_sparse_tensor()) drop_values(*attribute.mutable_sparse_tensor());
      if (attribute.has_g()) drop_weights(*attribute.mutable_g());
    }
}

// Inference of most operators takes no sparse values; their results have the same sizes.
void make_dense(onnx::GraphProto& graph) {
  for (const auto& sparse : graph.sparse_initializer()) {
    if (sparse.values().data_type() == onnx::TensorProto::INT64) continue;  // may be sizes
    auto& tensor = *graph.add_initializer();
    tensor.set_name(sparse.values().name());
    tensor.set_data_type(sparse.values().data_type());
    *tensor.mutable_dims() = sparse.dims();
  }
  graph.clear_sparse_initializer();
  for (auto& node : *graph.mutable_node())
    for (auto& attribute : *node.mutable_attribute())
      if (attribute.has_g()) make_dense(*attribute.mutable_g());
}

// How many became constants.
int fold(onnx::GraphProto& graph, const Sizes& sizes) {
  int folded = 0;
  for (auto& node : *graph.mutable_node()) {
    const auto tensor = sizes.made_by(node);
    if (!tensor) continue;
    node.set_op_type("Constant");
    node.clear_input();
    node.clear_attribute();
    auto* attribute = node.add_attribute();
    attribute->set_name("value");
    attribute->set_type(onnx::AttributeProto::TENSOR);
    *attribute->mutable_t() = *tensor;
    ++folded;
  }
  return folded;
}

void infer(onnx::ModelProto& model, bool propagates, Data* data) {
  const BoundedSchemas schemas(model.graph());
  onnx::shape_inference::InferShapes(model, &schemas, {false, 0, propagates}, data);
}

// What is known of values there is known of them here. Only operators that became constants differ,
// and they have no bodies.
void take_shapes(onnx::GraphProto& to, const onnx::GraphProto& from) {
  *to.mutable_input() = from.input();
  *to.mutable_value_info() = from.value_info();
  *to.mutable_output() = from.output();
  for (int i = 0; i < to.node_size(); ++i) {
    if (!has_body(to.node(i))) continue;
    for (int j = 0; j < to.node(i).attribute_size(); ++j)
      if (auto& attribute = *to.mutable_node(i)->mutable_attribute(j); attribute.has_g())
        take_shapes(*attribute.mutable_g(), from.node(i).attribute(j).g());
  }
}

}  // namespace

void infer_shapes(onnx::ModelProto& model) {
  model.clear_functions();  // they may call each other in circles
  import_domains(model);
  drop_weights(*model.mutable_graph());
  onnx::ModelProto folded = model;
  make_dense(*folded.mutable_graph());
  bool known = false;
  try {
    for (int round = 0; round < kMostRounds; ++round) {
      onnx::ModelProto inferred = folded;
      Data data;
      infer(inferred, true, &data);
      take_shapes(*model.mutable_graph(), inferred.graph());
      known = true;
      if (fold(*folded.mutable_graph(), Sizes(inferred.graph(), data)) == 0) return;
    }
    return;
  } catch (const std::exception&) {
    if (known) return;
  }
  onnx::ModelProto inferred = model;
  make_dense(*inferred.mutable_graph());
  try {
    infer(inferred, false, nullptr);
    take_shapes(*model.mutable_graph(), inferred.graph());
  } catch (const std::exception&) {  // all but what the file tells stays unknown
  }
}

}  // namespace tierpilot::sharing
