// tiertool top: a live view of nodes, of pages that move, and of who has memory where.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>
#include <optional>
#include <thread>

#include "daemon/memory/loop/loaded_latency.h"
#include "tools/output/arguments.h"
#include "tools/tiertool/object.h"
#include "tools/tiertool/top_screen.h"
#include "tools/tiertool/top_view.h"
#include "tools/tiertool/watching.h"

namespace tierpilot::tiertool {
namespace {

using nlohmann::ordered_json;
using std::chrono::steady_clock;

constexpr size_t kPlacedProcesses = 64;            // whose nodes are looked at
constexpr int64_t kPlacesBudget_ns = 100'000'000;  // a look, for that

struct TopOptions {
  double interval_s = 2;
  size_t count = 0;  // 0: until the user ends it
  size_t limit = 20;
  std::string order = "memory";
  bool no_measure = false;
};

int64_t now_ns() {
  return steady_clock::now().time_since_epoch().count();
}

Result<TierSet> unmeasured_tiers(const Context& context) {
  const auto topology = discover_topology(context.sysroot, {.nvml_library = {}});
  if (!topology) return tl::unexpected(topology.error());
  return make_paging_tiers(*topology);
}

// Looks at the machine and keeps what the next look is compared with.
class Observer {
 public:
  static Result<Observer> start(const Context& context, const TopOptions& options) {
    const bool measure = !options.no_measure && !context.foreign_root;
    auto tiers = measure ? find_placement_tiers(context) : unmeasured_tiers(context);
    if (!tiers) return tl::unexpected(tiers.error());
    auto first = read_machine(context.sysroot, now_ns());
    if (!first) return tl::unexpected(first.error());
    return Observer(context, std::move(tiers->tiers), std::move(*first), measure);
  }

  // What happened since the look before; nodes that come or go show up as they are.
  Result<ordered_json> look(TopOrder order, size_t limit) {
    auto now = read_machine(context_->sysroot, now_ns());
    if (!now) return tl::unexpected(now.error());
    shares_->fill(*now, kPlacedProcesses, kPlacesBudget_ns);
    if (latencies_) latencies_->refresh(tiers_);
    auto value = top_value({before_, *now, tiers_}, order, limit);
    before_ = std::move(*now);
    return value;
  }

 private:
  Observer(const Context& context, std::vector<PagingTier> tiers, MachineReading before,
           bool measure)
      : context_(&context), tiers_(std::move(tiers)), before_(std::move(before)) {
    shares_ = std::make_unique<NodeShares>(context.sysroot);
    if (!measure) return;
    latencies_ = std::make_unique<LoadedLatencyProbe>(tiers_);
    latencies_->refresh(tiers_);  // the first walk of fresh page tables is several times slower
  }

  const Context* context_;
  std::vector<PagingTier> tiers_;
  MachineReading before_;
  std::unique_ptr<NodeShares> shares_;
  std::unique_ptr<LoadedLatencyProbe> latencies_;
};

// One look after another as text or, a line each, as JSON.
int print_looks(const Context& context, Observer& observer, const TopOptions& options,
                TopOrder order) {
  auto& out = *context.output.out;
  for (size_t done = 0; options.count == 0 || done < options.count; ++done) {
    std::this_thread::sleep_for(std::chrono::duration<double>(options.interval_s));
    const auto value = observer.look(order, options.limit);
    if (!value) return print_error(context.output, value.error());
    if (context.output.json) {
      ordered_json line{{"schema", 1}};
      line.update(*value);
      out << line.dump(-1, ' ', false, ordered_json::error_handler_t::replace) << '\n';
    } else {
      out << (done ? "\n" : "") << top_text(*value);
    }
    if (!out.flush())
      return print_error(context.output,
                         {ErrorCode::kIo, "standard output takes no more: is the disk full?"});
  }
  return kExitOk;
}

TopOrder next_order(TopOrder order) {
  const auto at = std::ranges::find(kTopOrders, order) + 1;
  return at == std::end(kTopOrders) ? kTopOrders[0] : *at;
}

struct ScreenState {
  TopOrder order;
  bool paused = false;
  size_t first_line = 0;
};

// False when the user wants to end it.
bool obey(Screen::Key key, size_t rows, ScreenState& state) {
  switch (key) {
    case Screen::Key::kQuit:
      return false;
    case Screen::Key::kPause:
      state.paused = !state.paused;
      break;
    case Screen::Key::kOrder:
      state.order = next_order(state.order);
      break;
    case Screen::Key::kUp:
      state.first_line -= std::min<size_t>(state.first_line, 1);
      break;
    case Screen::Key::kDown:
      ++state.first_line;
      break;
    case Screen::Key::kPageUp:
      state.first_line -= std::min(state.first_line, rows);
      break;
    case Screen::Key::kPageDown:
      state.first_line += rows;
      break;
    case Screen::Key::kResized:
    case Screen::Key::kNone:
      break;
  }
  return true;
}

std::string status_line(const ScreenState& state, double interval_s) {
  return fmt::format(
      " tiertool top   every {} s   by {}{}   q quit  s order  space pause  arrows scroll",
      interval_s, order_name(state.order), state.paused ? "   PAUSED" : "");
}

int draw_looks(const Context& context, Observer& observer, const TopOptions& options,
               TopOrder order) {
  const auto interval_ns = static_cast<int64_t>(options.interval_s * 1e9);
  ScreenState state{.order = order};
  std::optional<Error> trouble;
  {
    Screen screen;
    std::string text = "The first look takes an interval.";
    int64_t due_ns = now_ns() + std::min<int64_t>(interval_ns, 500'000'000);
    for (size_t done = 0; options.count == 0 || done < options.count;) {
      screen.draw(status_line(state, options.interval_s), text, state.first_line);
      const auto before = state.order;
      const auto key = screen.wait(std::max<int64_t>(due_ns - now_ns(), 0));
      if (!obey(key, screen.text_rows(), state)) break;
      const auto lines = static_cast<size_t>(std::ranges::count(text, '\n'));
      state.first_line = std::min(state.first_line, lines ? lines - 1 : 0);
      const bool due = now_ns() >= due_ns && !state.paused;
      if (!due && state.order == before) {
        if (state.paused) due_ns = now_ns() + interval_ns;
        continue;
      }
      const auto value = observer.look(state.order, SIZE_MAX);
      if (!value) {
        trouble = value.error();
        break;
      }
      text = top_text(*value);
      due_ns = now_ns() + interval_ns;
      ++done;
    }
  }
  return trouble ? print_error(context.output, *trouble) : kExitOk;
}

int top(const Context& context, const TopOptions& options) {
  const auto order = order_from_name(options.order);
  if (!order) {
    print_error(context.output, order.error());
    return kExitUsage;
  }
  auto observer = Observer::start(context, options);
  if (!observer) return print_error(context.output, observer.error());
  return context.output.json || !have_screen() ? print_looks(context, *observer, options, *order)
                                               : draw_looks(context, *observer, options, *order);
}

}  // namespace

void add_top(CLI::App& app, Context& context) {
  auto* verb = app.add_subcommand("top", "a live view of tiers, moving pages and processes");
  auto options = std::make_shared<TopOptions>();
  verb->add_option("--interval", options->interval_s, "seconds between two looks")
      ->check(number_between(0.1, 3600.0))
      ->capture_default_str();
  verb->add_option("--count", options->count, "looks until it ends; 0: until q or Ctrl-C")
      ->check(whole_number())
      ->capture_default_str();
  verb->add_option("--order", options->order,
                   "of the processes; slow: by memory that is not in the fastest tier")
      ->type_name("memory|slow|faults|cpu")
      ->capture_default_str();
  verb->add_option("--limit", options->limit, "processes to print; a screen has all")
      ->check(whole_number())
      ->capture_default_str();
  verb->add_flag("--no-measure", options->no_measure,
                 "do not measure what an access to each tier takes now");
  verb->callback([&context, options] {
    context.command = [&context, options] { return top(context, *options); };
  });
}

}  // namespace tierpilot::tiertool
