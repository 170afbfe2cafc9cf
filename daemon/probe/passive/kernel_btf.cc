#include "daemon/probe/passive/kernel_btf.h"

#include <bpf/btf.h>
#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

namespace tierpilot {

void KernelBtf::Free::operator()(::btf* types) const {
  btf__free(types);
}

KernelBtf::KernelBtf(::btf* types) : types_(types) {}

Result<KernelBtf> KernelBtf::load() {
  ::btf* types = btf__load_vmlinux_btf();
  if (!types)
    return fail(ErrorCode::kUnavailable,
                fmt::format("/sys/kernel/btf/vmlinux: {}: the kernel is built without "
                            "CONFIG_DEBUG_INFO_BTF, or /sys is hidden",
                            std::strerror(errno)));
  return KernelBtf(types);
}

int KernelBtf::function_id(const std::string& name) const {
  // Structs may have the same name: bpf_iter_task_vma is both.
  return std::max(0, btf__find_by_name_kind(types_.get(), name.c_str(), BTF_KIND_FUNC));
}

int KernelBtf::tracepoint_id(const std::string& name) const {
  return std::max(
      0, btf__find_by_name_kind(types_.get(), ("btf_trace_" + name).c_str(), BTF_KIND_TYPEDEF));
}

std::optional<int> KernelBtf::tracepoint_args(const std::string& name) const {
  const int id = tracepoint_id(name);
  if (id == 0) return std::nullopt;
  const btf_type* type = btf__type_by_id(types_.get(), static_cast<__u32>(id));
  // typedef void (*btf_trace_x)(void *__data, ...)
  while (type && (btf_is_typedef(type) || btf_is_ptr(type)))
    type = btf__type_by_id(types_.get(), type->type);
  if (!type || !btf_is_func_proto(type) || btf_vlen(type) < 1) return std::nullopt;
  return btf_vlen(type) - 1;
}

std::map<uint32_t, std::string> KernelBtf::enum_names(const std::string& name) const {
  std::map<uint32_t, std::string> names;
  const int id = btf__find_by_name_kind(types_.get(), name.c_str(), BTF_KIND_ENUM);
  if (id < 0) return names;
  const btf_type* type = btf__type_by_id(types_.get(), static_cast<__u32>(id));
  const auto* values = btf_enum(type);
  for (int i = 0; i < btf_vlen(type); ++i)
    if (const char* text = btf__name_by_offset(types_.get(), values[i].name_off))
      names[static_cast<uint32_t>(values[i].val)] = text;
  return names;
}

}  // namespace tierpilot
