#include "base/table/cell.h"

#include <algorithm>
#include <charconv>
#include <chrono>
#include <cmath>

namespace tierpilot {
namespace {

constexpr double kMaxSeconds = 9e9;  // in nanoseconds it still is an int64_t
constexpr size_t kMaxShown = 40;

// Takes parts off the front of a text; a part that does not fit makes it fail for good.
class Scanner {
 public:
  explicit Scanner(std::string_view text) : rest_(text) {}

  int number(size_t digits) {
    int value = 0;
    const auto part = rest_.substr(0, digits);
    const auto [end, err] = std::from_chars(part.data(), part.data() + part.size(), value);
    const bool good = err == std::errc{} && !part.starts_with('-');
    ok_ = ok_ && good;
    if (good) rest_.remove_prefix(static_cast<size_t>(end - part.data()));
    return value;
  }
  bool skip(std::string_view any_of) {
    if (rest_.empty() || any_of.find(rest_.front()) == any_of.npos) return false;
    rest_.remove_prefix(1);
    return true;
  }
  void expect(std::string_view any_of) { ok_ = skip(any_of) && ok_; }
  // ".25" as nanoseconds
  int64_t fraction_ns() {
    int64_t ns = 0;
    if (!skip(".")) return 0;
    for (int64_t digit_ns = 100'000'000; !rest_.empty() && rest_[0] >= '0' && rest_[0] <= '9';
         digit_ns /= 10) {
      ns += (rest_[0] - '0') * digit_ns;
      rest_.remove_prefix(1);
    }
    return ns;
  }
  bool starts_with(char c) const { return rest_.starts_with(c); }
  bool finished() const { return ok_ && rest_.empty(); }
  bool empty() const { return rest_.empty(); }

 private:
  std::string_view rest_;
  bool ok_ = true;
};

int64_t offset_s(Scanner& text) {
  const bool west = text.starts_with('-');
  if (!text.skip("+-")) return text.skip("Z"), 0;
  const int hours = text.number(2);
  text.skip(":");
  const int minutes = text.empty() ? 0 : text.number(2);
  return (west ? -60 : 60) * (int64_t{60} * hours + minutes);
}

std::optional<int64_t> parse_calendar_ns(std::string_view cell) {
  Scanner text(cell);
  const int year = text.number(4);
  text.expect("-/");
  const int month = text.number(2);
  text.expect("-/");
  const int day = text.number(2);
  int hour = 0, minute = 0, second = 0;
  int64_t fraction_ns = 0;
  if (!text.empty()) {
    text.expect(" T");
    hour = text.number(2);
    text.expect(":");
    minute = text.number(2);
    if (text.skip(":")) {
      second = text.number(2);
      fraction_ns = text.fraction_ns();
    }
  }
  const int64_t east_s = offset_s(text);
  const std::chrono::year_month_day date{std::chrono::year(year),
                                         std::chrono::month(static_cast<unsigned>(month)),
                                         std::chrono::day(static_cast<unsigned>(day))};
  if (!text.finished() || !date.ok() || hour > 23 || minute > 59 || second > 60)
    return std::nullopt;
  const int64_t days = std::chrono::sys_days(date).time_since_epoch().count();
  const int64_t seconds = days * 86400 + hour * 3600 + minute * 60 + second - east_s;
  if (seconds < 0 || static_cast<double>(seconds) > kMaxSeconds) return std::nullopt;
  return seconds * 1'000'000'000 + fraction_ns;
}

}  // namespace

std::optional<double> parse_number(std::string_view cell) {
  double value = 0;
  const auto [end, err] = std::from_chars(cell.data(), cell.data() + cell.size(), value);
  if (err != std::errc{} || end != cell.data() + cell.size() || !std::isfinite(value))
    return std::nullopt;
  return value;
}

std::optional<int64_t> parse_time_ns(std::string_view cell) {
  const auto number = parse_number(cell);
  if (!number) return parse_calendar_ns(cell);
  const double seconds = *number < 1e11 ? *number : *number < 1e14 ? *number / 1e3 : *number / 1e6;
  if (!(seconds >= 0 && seconds <= kMaxSeconds)) return std::nullopt;
  return std::llround(seconds * 1e9);
}

std::string shown(std::string_view cell) {
  std::string text(cell.substr(0, kMaxShown));
  for (char& c : text)
    if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f) c = '?';
  return '\'' + text + (cell.size() > kMaxShown ? "...'" : "'");
}

}  // namespace tierpilot
