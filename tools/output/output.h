// The one output layer of the command-line tools: a JSON value becomes a table on a terminal, or
// JSON with -j. What the tools print is always the same value, so scripts and people see the same.
//
//   ordered_json value{{"nodes", ...}};
//   return print(output, value, {{.rows = "/nodes", .columns = {{"NODE", "/name"},
//                                 {"FREE", "/free_bytes", Format::kBytes}}}});
#pragma once

#include <iosfwd>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace tierpilot {

enum ExitCode : int {
  kExitOk = 0,
  kExitFailed = 1,
  kExitUsage = 2,
  kExitNotFound = 3,  // the named thing does not exist, or nobody answers
  kExitDegraded = 4,  // it worked, but something that was asked for could not be had
};

ExitCode exit_code_for(ErrorCode code);

// How a cell is written. Headers carry the unit unless the format writes it (kBytes, kPercent).
enum class Format {
  kText,     // strings bare; lists joined by commas; booleans yes/no
  kNumber,   // at most three significant decimals, thousands separated: 12,345 / 3.14 / 0.00271
  kBytes,    // "64.0 MiB"
  kPercent,  // a share in [0, 1] as "12.3 %"
  kTime,     // wall milliseconds since 1970 as local "2024-01-31 12:00:00"
};

struct Column {
  std::string header;
  std::string pointer;  // JSON pointer from the row: "/latency_ns/p50"
  Format format = Format::kText;
};

// A null (or absent) cell shows "-"; when "<pointer>_unavailable" holds a reason, it shows "- [1]"
// and the reason stands once below the table.
struct Table {
  std::string title{};  // a line above; empty: none
  std::string rows{};   // JSON pointer to an array (a row each) or an object (a line per column)
  std::vector<Column> columns{};
  std::string empty{};  // what to say when there are no rows; empty: only the headers
};

// Where and how to print. The streams outlive it.
struct Output {
  bool json = false;
  std::ostream* out;
  std::ostream* err;

  Output();  // std::cout, std::cerr
  Output(bool json, std::ostream& out, std::ostream& err) : json(json), out(&out), err(&err) {}
};

// Prints `value` (an object) as tables in order, or as {"schema": 1, ...value} with -j. Warnings
// say what could not be had: "warning: ..." on stderr, or the member "warnings" with -j. Returns
// kExitOk, kExitDegraded with warnings, kExitFailed when the stream refuses the bytes.
int print(const Output& output, const nlohmann::ordered_json& value,
          const std::vector<Table>& tables, const std::vector<std::string>& warnings = {});

// kExitOk once the stream has taken all of it; else kExitFailed, and why on stderr.
int finish(const Output& output);

// "error: message" on stderr, or {"schema": 1, "error": {"code", "message"}} with -j.
int print_error(const Output& output, const Error& error);

// {"<key>": number} or {"<key>": null, "<key>_unavailable": reason} as `print` expects it.
void set_or_unavailable(nlohmann::ordered_json& object, const std::string& key,
                        std::optional<double> value, std::string_view reason);

// The text that `print` writes for one table; for tools that redraw live progress.
std::string format_table(const nlohmann::ordered_json& value, const Table& table);

}  // namespace tierpilot
