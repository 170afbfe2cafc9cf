#include "daemon/probe/passive/libbpf_log.h"

#include <bpf/libbpf.h>

#include <cstdarg>
#include <cstdio>
#include <mutex>
#include <sstream>

#include "base/log.h"

namespace tierpilot {
namespace {

thread_local std::string first_complaint;
thread_local std::string last_verifier_complaint;

std::string trimmed(std::string text) {
  while (!text.empty() && (text.back() == '\n' || text.back() == ' ')) text.pop_back();
  return text;
}

int on_message(libbpf_print_level level, const char* format, va_list args) {
  // libbpf's own debug messages are hundreds of lines per object.
  if (level == LIBBPF_DEBUG && !spdlog::should_log(spdlog::level::trace)) return 0;
  va_list again;
  va_copy(again, args);
  const int size = std::vsnprintf(nullptr, 0, format, again);
  va_end(again);
  if (size <= 0) return 0;
  std::string message(static_cast<size_t>(size), '\0');
  std::vsnprintf(message.data(), message.size() + 1, format, args);
  message = trimmed(std::move(message));
  spdlog::log(level == LIBBPF_DEBUG ? spdlog::level::trace : spdlog::level::debug, "{}", message);
  if (level != LIBBPF_WARN) return size;
  auto complaint = verifier_complaint(message);
  if (!complaint.empty())
    last_verifier_complaint = std::move(complaint);
  else if (first_complaint.empty())
    first_complaint = message.starts_with("libbpf: ") ? message.substr(8) : message;
  return size;
}

}  // namespace

void capture_libbpf_log() {
  static std::once_flag once;
  std::call_once(once, [] { libbpf_set_print(on_message); });
}

void clear_libbpf_reason() {
  first_complaint.clear();
  last_verifier_complaint.clear();
}

std::string libbpf_reason() {
  return last_verifier_complaint.empty() ? first_complaint : last_verifier_complaint;
}

std::string verifier_complaint(const std::string& message) {
  if (message.find("BEGIN PROG LOAD LOG") == std::string::npos) return "";
  std::istringstream lines(message);
  std::string complaint;
  for (std::string line; std::getline(lines, line);) {
    // Statistics and the dump of registers and instructions are not the reason.
    const bool noise = line.empty() || line.find("PROG LOAD LOG") != std::string::npos ||
                       line.starts_with("processed ") || line.starts_with(";") ||
                       line.starts_with("verification time") || line.starts_with("stack depth") ||
                       (line[0] >= '0' && line[0] <= '9' && line.find(": ") != std::string::npos);
    if (!noise) complaint = trimmed(line);
  }
  return complaint.empty() ? "refused by the verifier" : "verifier: " + complaint;
}

}  // namespace tierpilot
