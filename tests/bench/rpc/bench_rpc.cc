// RPC cost over a Unix socket and over mutual TLS on loopback, beside a bare socket in the same
// run. Client and server are threads of this process. Rounds alternate between the three,
// so that a disturbance hits all alike; medians and the spread of the rounds are shown.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "base/log.h"
#include "tests/bench/rpc/ping_pong.h"
#include "tests/bench/rpc/rounds.h"
#include "tests/rpc/server_thread.h"
#include "tests/rpc/test_certificates.h"

namespace tierpilot::bench {
namespace {

using test::ServerThread;

// Figure name -> one value per round, in the order of first mention.
struct Figures {
  void add(const std::string& name, double value) {
    if (!values.contains(name)) names.push_back(name);
    values[name].push_back(value);
  }
  void add(const std::string& transport, const Round& round) {
    add(transport + "_p50_us", round.p50_us);
    add(transport + "_p99_us", round.p99_us);
    add(transport + "_calls_per_s", round.calls_per_s);
    add(transport + "_cpu_us_per_call", round.cpu_us_per_call);
    add(transport + "_chunk_gb_per_s", round.chunk_gb_per_s);
    add(transport + "_cpu_us_per_chunk", round.cpu_us_per_chunk);
  }

  std::vector<std::string> names;
  std::map<std::string, std::vector<double>> values;
};

Figures measure(int rounds, const Sizes& sizes) {
  test::TemporaryFolder folder;
  const test::TestAuthority authority(folder.path(), "bench");
  const TlsFiles files = authority.issue("rpc-bench", "IP:127.0.0.1");
  ServerThread unix_server(folder.socket_address());
  ServerThread tls_server(*Address::parse("tls:127.0.0.1:0"), files);
  EventLoop loop;
  auto unix_connection = test::connect(loop, unix_server.address());
  auto tls_connection = test::connect(loop, tls_server.address(), files);

  Figures figures;
  for (int round = 0; round < rounds; ++round) {
    const Histogram floor_ns = socket_ping_pong_ns(sizes.round_trips);
    figures.add("floor_p50_us", floor_ns.quantile(0.50) / 1e3);
    figures.add("floor_p99_us", floor_ns.quantile(0.99) / 1e3);
    figures.add("floor_calls_per_s",
                socket_answers_per_s(sizes.pipelined_calls, kCallsOnTheirWay, 1));
    figures.add("floor_chunk_gb_per_s",
                socket_answers_per_s(sizes.chunks, kChunksOnTheirWay, kChunkBytes) *
                    double{kChunkBytes} / 1e9);
    figures.add("unix", measure_round(loop, test::echo_of(*unix_connection), sizes));
    figures.add("tls", measure_round(loop, test::echo_of(*tls_connection), sizes));
  }
  return figures;
}

void print(Figures& figures, bool as_json) {
  nlohmann::ordered_json json{{"schema", 1}, {"rounds", figures.values.begin()->second.size()}};
  for (const std::string& name : figures.names) {
    std::vector<double>& values = figures.values[name];
    std::sort(values.begin(), values.end());
    const double median = values[values.size() / 2];
    json["figures"][name] = {{"median", median}, {"min", values.front()}, {"max", values.back()}};
    if (!as_json)
      fmt::print("{:24} {:>12.2f}   {:.2f} .. {:.2f}\n", name, median, values.front(),
                 values.back());
  }
  if (as_json) fmt::print("{}\n", json.dump(2));
}

int run(int argc, char** argv) {
  CLI::App app("RPC benchmark: medians over rounds, and their spread");
  bool quick = false, as_json = false;
  int rounds = 7;
  app.add_flag("--quick", quick, "one short round, to see that it works");
  app.add_flag("-j,--json", as_json, "JSON on stdout");
  app.add_option("--rounds", rounds, "alternating rounds")->check(CLI::Range(1, 1000));
  CLI11_PARSE(app, argc, argv);
  const Sizes sizes = quick ? Sizes{200, 2'000, 8} : Sizes{5'000, 50'000, 256};
  auto figures = measure(quick ? 1 : rounds, sizes);
  print(figures, as_json);
  return 0;
}

}  // namespace
}  // namespace tierpilot::bench

int main(int argc, char** argv) {
  return tierpilot::bench::run(argc, argv);
}
