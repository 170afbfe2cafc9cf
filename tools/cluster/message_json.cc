#include "tools/cluster/message_json.h"

#include <cmath>

#include "rpc/node.capnp.h"

namespace tierpilot {
namespace {

using nlohmann::ordered_json;

bool is_measure(capnp::Type type) {
  return type.isStruct() && type.asStruct().getProto().getId() == capnp::typeId<wire::Measure>();
}

ordered_json value_json(capnp::DynamicValue::Reader value) {
  using capnp::DynamicValue;
  switch (value.getType()) {
    case DynamicValue::BOOL:
      return value.as<bool>();
    case DynamicValue::INT:
      return value.as<int64_t>();
    case DynamicValue::UINT:
      return value.as<uint64_t>();
    case DynamicValue::FLOAT:
      return value.as<double>();
    case DynamicValue::TEXT: {
      const auto text = value.as<capnp::Text>();
      return std::string(text.begin(), text.size());
    }
    case DynamicValue::DATA: {
      const auto data = value.as<capnp::Data>();
      return std::string(reinterpret_cast<const char*>(data.begin()), data.size());
    }
    case DynamicValue::LIST:
      return messages_json(value.as<capnp::DynamicList>());
    case DynamicValue::ENUM: {
      const auto symbol = value.as<capnp::DynamicEnum>();
      KJ_IF_MAYBE (enumerant, symbol.getEnumerant())
        return snake_case(enumerant->getProto().getName().cStr());
      return symbol.getRaw();
    }
    case DynamicValue::STRUCT:
      return message_json(value.as<capnp::DynamicStruct>());
    default:
      return nullptr;  // Void, AnyPointer, capabilities: nothing to print
  }
}

void put_measure(ordered_json& object, const std::string& key, bool sent,
                 wire::Measure::Reader measure) {
  const bool measured = sent && measure.isValue();
  if (measured && std::isfinite(measure.getValue())) {
    object[key] = measure.getValue();
    return;
  }
  object[key] = nullptr;
  object[key + "_unavailable"] = !sent      ? "not reported"
                                 : measured ? "not a finite number"
                                            : std::string(measure.getUnavailable().cStr());
}

bool is_pointer_struct(capnp::StructSchema::Field field) {
  return field.getType().isStruct() && field.getProto().isSlot();
}

}  // namespace

std::string snake_case(std::string_view camel_case) {
  std::string snake;
  for (const char c : camel_case) {
    const bool upper = c >= 'A' && c <= 'Z';
    if (upper && !snake.empty()) snake += '_';
    snake += upper ? static_cast<char>(c - 'A' + 'a') : c;
  }
  return snake;
}

ordered_json message_json(capnp::DynamicStruct::Reader message) {
  auto object = ordered_json::object();
  const auto put = [&](capnp::StructSchema::Field field) {
    const auto name = field.getProto().getName();
    const std::string key = snake_case({name.begin(), name.size()});
    const bool sent = !is_pointer_struct(field) || message.has(field);
    if (is_measure(field.getType()))
      put_measure(object, key, sent,
                  message.get(field).as<capnp::DynamicStruct>().as<wire::Measure>());
    else
      object[key] = sent ? value_json(message.get(field)) : ordered_json(nullptr);
  };
  for (const auto field : message.getSchema().getNonUnionFields()) put(field);
  KJ_IF_MAYBE (field, message.which()) put(*field);
  return object;
}

ordered_json messages_json(capnp::DynamicList::Reader messages) {
  auto array = ordered_json::array();
  for (const auto message : messages) array.push_back(value_json(message));
  return array;
}

}  // namespace tierpilot
