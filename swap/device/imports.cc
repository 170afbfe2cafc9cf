#include "swap/device/imports.h"

#include <elf.h>
#include <link.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <cstring>
#include <utility>
#include <vector>

namespace tierpilot::swap {
namespace {

#if defined(__x86_64__)
constexpr uint32_t kCall = R_X86_64_JUMP_SLOT, kAddress = R_X86_64_GLOB_DAT;
#elif defined(__aarch64__)
constexpr uint32_t kCall = R_AARCH64_JUMP_SLOT, kAddress = R_AARCH64_GLOB_DAT;
#else
constexpr uint32_t kCall = 0, kAddress = 0;  // none is found
#endif

using Slot = void**;

// The dynamic section of one library (ELF-64 Object File Format; System V ABI, Dynamic Linking).
struct Tables {
  const ElfW(Sym) * symbols = nullptr;
  const char* names = nullptr;
  std::span<const ElfW(Rela)> calls{}, addresses{};
};

const ElfW(Phdr) * segment(const dl_phdr_info& library, uint32_t type) {
  const auto* const end = library.dlpi_phdr + library.dlpi_phnum;
  const auto* const found = std::find_if(library.dlpi_phdr, end,
                                         [&](const auto& header) { return header.p_type == type; });
  return found == end ? nullptr : found;
}

Tables tables_of(const dl_phdr_info& library) {
  Tables tables;
  const auto* const dynamic = segment(library, PT_DYNAMIC);
  if (!dynamic) return tables;
  const ElfW(Rela)* calls = nullptr;
  const ElfW(Rela)* addresses = nullptr;
  size_t call_bytes = 0, address_bytes = 0;
  const auto* entry = reinterpret_cast<const ElfW(Dyn)*>(library.dlpi_addr + dynamic->p_vaddr);
  for (; entry->d_tag != DT_NULL; ++entry) {
    // glibc has added the library's address, other linkers leave that to who reads.
    const auto value = entry->d_un.d_ptr;
    const auto at = value < library.dlpi_addr ? library.dlpi_addr + value : value;
    switch (entry->d_tag) {
      case DT_SYMTAB:
        tables.symbols = reinterpret_cast<const ElfW(Sym)*>(at);
        break;
      case DT_STRTAB:
        tables.names = reinterpret_cast<const char*>(at);
        break;
      case DT_JMPREL:
        calls = reinterpret_cast<const ElfW(Rela)*>(at);
        break;
      case DT_RELA:
        addresses = reinterpret_cast<const ElfW(Rela)*>(at);
        break;
      case DT_PLTRELSZ:
        call_bytes = value;
        break;
      case DT_RELASZ:
        address_bytes = value;
        break;
      default:
        break;
    }
  }
  if (!tables.symbols || !tables.names) return {};
  if (calls) tables.calls = {calls, call_bytes / sizeof *calls};
  if (addresses) tables.addresses = {addresses, address_bytes / sizeof *addresses};
  return tables;
}

std::vector<Slot> slots_of(const dl_phdr_info& library, const Tables& tables, const char* name) {
  std::vector<Slot> slots;
  for (const auto relocations : {tables.calls, tables.addresses})
    for (const auto& relocation : relocations) {
      const auto type = static_cast<uint32_t>(ELF64_R_TYPE(relocation.r_info));
      const auto& symbol = tables.symbols[ELF64_R_SYM(relocation.r_info)];
      if ((type == kCall || type == kAddress) && type != 0 &&
          std::strcmp(tables.names + symbol.st_name, name) == 0)
        slots.push_back(reinterpret_cast<Slot>(library.dlpi_addr + relocation.r_offset));
    }
  return slots;
}

// What was relocated may have been made read-only since.
class Writable {
 public:
  explicit Writable(const dl_phdr_info& library) {
    const auto* const relro = segment(library, PT_GNU_RELRO);
    if (!relro) return;
    const auto page = static_cast<uintptr_t>(sysconf(_SC_PAGESIZE));
    const auto begin = library.dlpi_addr + relro->p_vaddr;
    begin_ = begin / page * page;
    bytes_ = (begin + relro->p_memsz) / page * page - begin_;
    good_ = set(PROT_READ | PROT_WRITE);
  }
  ~Writable() {
    if (good_) set(PROT_READ);
  }
  explicit operator bool() const { return good_; }

 private:
  bool set(int protection) const {
    return bytes_ == 0 || mprotect(reinterpret_cast<void*>(begin_), bytes_, protection) == 0;
  }
  uintptr_t begin_ = 0;
  size_t bytes_ = 0;
  bool good_ = true;
};

bool redirect_in(const dl_phdr_info& library, std::span<const Import> imports) {
  const auto tables = tables_of(library);
  std::vector<std::pair<Slot, void*>> changes;
  for (const auto& import : imports) {
    const auto slots = slots_of(library, tables, import.name);
    if (slots.empty()) return false;
    for (auto* const slot : slots) changes.emplace_back(slot, import.instead);
  }
  const Writable writable(library);
  if (!writable) return false;
  for (const auto& [slot, instead] : changes)
    std::atomic_ref(*slot).store(instead, std::memory_order_release);
  return true;
}

struct Request {
  std::string_view library;
  std::span<const Import> imports;
  int redirected = 0;
};

int visit(dl_phdr_info* library, size_t, void* data) {
  auto& request = *static_cast<Request*>(data);
  std::string_view name(library->dlpi_name);
  name.remove_prefix(name.rfind('/') == std::string_view::npos ? 0 : name.rfind('/') + 1);
  if (name.starts_with(request.library) && redirect_in(*library, request.imports))
    ++request.redirected;
  return 0;
}

}  // namespace

int redirect(std::string_view library, std::span<const Import> imports) {
  Request request{library, imports};
  dl_iterate_phdr(visit, &request);
  return request.redirected;
}

}  // namespace tierpilot::swap
