#include "policies/swap/planner.h"

#include <algorithm>

#include "base/random.h"
#include "policies/swap/bound/bound.h"
#include "policies/swap/capuchin.h"
#include "policies/swap/changes.h"
#include "policies/swap/cover.h"
#include "policies/swap/link/link_use.h"
#include "policies/swap/link/linked_eviction.h"
#include "policies/swap/peak_search.h"
#include "policies/swap/rival_plans.h"
#include "policies/swap/scores.h"
#include "policies/swap/trials.h"

namespace tierpilot::swap {
namespace {

constexpr int kMostTrials = 6'000;
constexpr double kShareAlone = 0.12;   // of them after these, where there is no link
constexpr double kFirstShare = 0.5;    // of them, before plans of the tightest point
constexpr double kHoldingShare = 0.3;  // as many more, where plans that hold are better
// Of the search's trials: what varies costs of a cover, factors on scores, and absences; over a
// link the rest changes ways.
constexpr double kCoverShare = 0.15, kScoreShare = 0.25, kLinkedShare = 0.35, kAbsenceShare = 0.25;
constexpr double kPeakShare = 0.3;  // of what is left then varies plans of the tightest point
constexpr double kQuickTie = 1.03;  // as in CoverSettings
constexpr int64_t kMostQuickLooks = 300'000;  // of one score, at candidates
// Of an own slow one, in steps of thousands of tensors; rivals' scores are tried to their ends.
constexpr int64_t kMostOwnLooks = 1'000'000;
constexpr size_t kMostQuickCapuchinLooks = 1'000'000;
constexpr size_t kMostQuickHold = 3'000;     // and so do covers that hold, and further prices
constexpr size_t kMostQuickOffers = 50'000;  // of covers, before there is no further one
constexpr int kSlowScore = 20;  // further trials that one takes which sums up what is evicted

struct Knobs {
  double slack = 0;  // share of the budget that the cover leaves free, for what is recomputed
  double shared_cost = 0.5;
  double link_price = 0.1;
  bool on_time = false;  // copies have their times on the link
  bool hold = false;     // as in CoverSettings
};

class Search {
 public:
  Search(const Graph& graph, const PlannerSettings& settings)
      : graph_(graph),
        settings_(settings),
        timetable_(graph),
        random_(derived_seed(settings.seed, "plan")),
        trials_(graph, settings.limits, random_),
        peaks_(graph, settings.limits, timetable_, random_, trials_) {}

  Planned run() {
    const bool quick = settings_.work == kQuickWork, link = settings_.limits.link.exists();
    const bool possible = !impossible(graph_, settings_.limits);
    if (quick && settings_.limits.recompute) {
      try_cover({}, {});
      if (link && offers_ < kMostQuickOffers) sweep_link({0.3}, true);
      if (graph_.operators.size() <= kMostQuickHold) {
        if (link) sweep_link({1.0}, true);
        if (possible) sweep_holding();
      }
    } else {
      sweep();
    }
    if (settings_.limits.recompute) {
      // A replay that is behind the best is given up: the fast ones come first.
      if (quick) try_rivals();
      try_scores(quick);  // they drop
      if (!quick) try_rivals();
      if (!quick) {
        try_segments();
        if (link) try_without_link();
      } else if (link)
        try_link(Tried(trials_.best()), {0.1, 0.3, 1.0});
      if (quick && graph_.operators.size() <= PeakSearch::kMostQuickOperators)
        peaks_.sweep_quickly();
      if (quick && possible && !trials_.best().outcome.done) try_slow_scores();
    }
    if (!quick) {
      vary(kFirstShare);
      if (knobs_.hold) vary(kHoldingShare);
      if (settings_.limits.recompute && graph_.operators.size() <= kMostCutOperators)
        peaks_.sweep();
      try_quickly();
      trials_.begin_walk();
      vary(link ? 1 - kFirstShare : kShareAlone);
    }
    return {.plan = trials_.best().plan,
            .outcome = trials_.best().outcome,
            .trials = trials_.done(),
            .origin = trials_.origin()};
  }

 private:
  // By chance, around the best: `share` of the trials.
  void vary(double share) {
    const bool link = settings_.limits.link.exists();
    const auto size = std::max<size_t>(graph_.operators.size(), 1);
    const auto trials = std::min<size_t>(settings_.work / size, kMostTrials);
    const auto most = trials_.done() + static_cast<int>(share * static_cast<double>(trials));
    while (trials_.done() < most) {
      const double draw = random_.unit();
      if (peaks_.promising() && random_.chance(kPeakShare))
        peaks_.vary();
      else if (draw < kCoverShare)
        vary_costs();
      else if (draw < kCoverShare + kScoreShare && !link &&
               score_.score.cost == Score::Cost::kClasses)
        vary_scores();
      else if (draw < kCoverShare + kLinkedShare && is_promising())
        vary_linked();
      else if (link && settings_.limits.recompute && draw < 1 - kAbsenceShare)
        vary_ways();
      else if (settings_.limits.recompute)
        vary_absences();
      else
        vary_costs();
    }
  }

  bool try_cover(const Knobs& knobs, std::span<const float> bias) {
    const auto& limits = settings_.limits;
    const double budget = static_cast<double>(limits.budget_bytes) * (1 - knobs.slack);
    Cover cover(graph_, timetable_,
                {.budget_bytes = static_cast<int64_t>(budget),
                 .shared_cost = knobs.shared_cost,
                 .link_price = knobs.link_price,
                 .on_time = knobs.on_time,
                 .link = limits.link,
                 .recompute = limits.recompute,
                 .hurried = settings_.work == kQuickWork,
                 .hold = knobs.hold,
                 .tie = settings_.work == kQuickWork ? kQuickTie : 1.0001,
                 .bias = bias});
    const auto plan = cover.plan();
    offers_ += cover.offers();
    if (!trials_.mend(plan, knobs.hold ? cover.timetable() : timetable_, "cover")) return false;
    knobs_ = knobs;
    return true;
  }

  bool try_score(const NamedScore& named, const std::vector<float>* bias) {
    ScoredEviction manager(graph_, named.score, settings_.seed, near());
    if (bias) manager.set_bias(*bias);
    if (settings_.work == kQuickWork)
      manager.set_most_looks(kMostQuickLooks);
    else if (named.score.unreferenced_first && named.score.cost != Score::Cost::kClasses)
      manager.set_most_looks(kMostOwnLooks);
    if (!trials_.attempt(manager, timetable_, named.name)) return false;
    score_ = named;
    return true;
  }

  // A link that is there need not be used: small copies are slow, and a search has its luck.
  void try_without_link() {
    auto settings = settings_;
    settings.limits.link = {};
    Search alone(graph_, settings);
    alone.run();
    const auto& best = alone.trials_.best();
    if (best.outcome.done) trials_.follow(best.plan, best.timetable, alone.trials_.origin());
  }

  // What is found in a hurry is better at times.
  void try_quickly() {
    auto settings = settings_;
    settings.work = kQuickWork;
    Search quick(graph_, settings);
    quick.run();
    trials_.adopt(quick.trials_);
  }

  // What scores decide, and that as a plan, followed with look-ahead. Classes are the fast ones.
  void try_scores(bool quick) {
    for (const auto list : {own_scores(), rival_scores()})
      for (const auto& named : list) {
        const bool fast = named.score.cost == Score::Cost::kClasses;
        if (named.score.random || (quick && !fast)) continue;
        if (try_score(named, nullptr) && !quick)
          trials_.mend(Plan(trials_.best().plan), timetable_, {});
      }
  }

  // Where no fast one has got through there is nothing to lose but some time.
  void try_slow_scores() {
    for (const auto& named : rival_scores())
      if (!named.score.random && !trials_.best().outcome.done) try_score(named, nullptr);
  }

  void try_segments() {
    std::vector<Tried> segments;
    for (const double factor :
         {0.15, 0.25, 0.35, 0.5, 0.6, 0.7, 0.8, 0.9, 1.2, 1.4, 1.7, 2.0, 3.0}) {
      auto timetable = timetable_;
      const auto plan = checkpoint_plan(graph_, timetable, factor);
      if (!plan) continue;
      trials_.follow(*plan, timetable, "checkpoint");
      segments.push_back({*plan, std::move(timetable)});
    }
    if (!settings_.limits.link.exists()) return;
    try_linked();
    const auto shares = {0.02, 0.05, 0.1, 0.2, 0.4, 1.0};
    try_link(Tried(trials_.best()), shares);
    for (const auto& segment : segments) try_link(segment, shares);
  }

  void try_rivals() {
    const auto& limits = settings_.limits;
    for (const auto* name : {"checkpoint", "swap-all"}) {
      auto timetable = timetable_;
      const auto plan = rival_plan(name, graph_, timetable, limits);
      if (plan) trials_.follow(*plan, timetable, name);
    }
    const auto most_looks = settings_.work == kQuickWork ? kMostQuickCapuchinLooks : SIZE_MAX;
    for (const auto& plan : capuchin_plans(graph_, timetable_, limits, most_looks))
      trials_.follow(plan, timetable_, "capuchin");
  }

  // Scores decide what is dropped, and the longest to recompute leaves over the link before.
  void try_linked() {
    Plan all{.absences = std::vector<std::vector<Absence>>(graph_.storages.size())};
    for (StorageId storage = 0; storage < graph_.storages.size(); ++storage)
      if (auto absence = long_absence(graph_, timetable_, storage)) {
        absence->action = Action::kRecompute;
        all.absences[storage].push_back(*absence);
      }
    for (const double share : {0.03, 0.06, 0.1, 0.15, 0.2, 0.3, 0.4, 1.0}) {
      auto timetable = timetable_;
      const auto plan = with_link(graph_, timetable, settings_.limits.link, all, share);
      try_linked({plan, timetable, own_scores().front()});
    }
    for (const auto& named : own_scores())
      if (!named.score.look_ahead && is_promising())
        try_linked({linked_->plan, linked_->timetable, named});
  }

  struct Linked {
    Plan plan;  // what leaves over the link, and what could
    Timetable timetable;
    NamedScore score;
    Outcome outcome{};
  };

  void try_linked(Linked linked) {
    LinkedEviction manager(graph_, linked.timetable, linked.plan, linked.score.score,
                           settings_.limits.link, settings_.seed, near());
    trials_.attempt(manager, linked.timetable, linked.score.name, &linked.outcome,
                    Trials::kPromising);
    if (linked.score.score.cost != Score::Cost::kClasses) trials_.count(kSlowScore);
    if (!linked_ || better(linked.outcome, linked_->outcome)) linked_ = std::move(linked);
  }

  bool is_promising() const { return linked_ && trials_.is_promising(linked_->outcome); }

  void vary_linked() {
    auto linked = *linked_;
    linked.outcome = {};
    if (change_ways(graph_, random_, trials_.walking(), linked.plan, linked.timetable))
      try_linked(std::move(linked));
  }

  // With a part of it over the link.
  void try_link(const Tried& tried, std::initializer_list<double> shares) {
    for (const double share : shares) {
      auto timetable = tried.timetable;
      const auto changed = with_link(graph_, timetable, settings_.limits.link, tried.plan, share);
      trials_.change(changed, timetable);
    }
  }

  // One setting after the other, each from the best of those before.
  void sweep() {
    try_cover(Knobs{}, {});
    for (const double slack : {0.03, 0.07, 0.12, 0.2, 0.35}) {
      auto knobs = knobs_;
      knobs.slack = slack;
      try_cover(knobs, {});
    }
    if (settings_.limits.recompute) {
      for (const double shared : {0.0, 1.0}) {
        auto knobs = knobs_;
        knobs.shared_cost = shared;
        try_cover(knobs, {});
      }
    }
    if (settings_.limits.recompute) sweep_holding();
    if (!settings_.limits.link.exists()) return;
    // Where all is copied one price is as good as another.
    if (!settings_.limits.recompute) return sweep_link({0.3}, true);
    sweep_link({0.02, 0.4, 1.0, 3.0}, false);
    sweep_link({0.02, 0.05, 0.1, 0.2, 0.3, 0.4, 0.6, 0.8, 1.0, 1.5}, true);
  }

  // With what is held for recomputing.
  void sweep_holding() {
    const bool quick = settings_.work == kQuickWork, link = settings_.limits.link.exists();
    auto knobs = knobs_;
    knobs.hold = true;
    for (const double slack : {0.0, 0.03}) {
      knobs.slack = slack;
      knobs.on_time = false;
      if (!link || !quick) try_cover(knobs, {});
      knobs.on_time = true;
      for (const double price : {0.02, 0.1, 0.4, 1.0}) {
        if (!link || (quick && price != 0.4)) continue;
        knobs.link_price = price;
        try_cover(knobs, {});
      }
      if (quick) break;
    }
  }

  // The dearer the link's time, the fewer leave over it, those that are the longest to recompute.
  void sweep_link(std::initializer_list<double> prices, bool on_time) {
    for (const double price : prices) {
      auto knobs = knobs_;
      knobs.link_price = price;
      knobs.on_time = on_time;
      try_cover(knobs, {});
    }
  }

  // Evolution with one parent: some costs change, and stay changed where the replay got shorter.
  void vary_costs() {
    if (bias_.empty()) bias_.assign(graph_.storages.size(), 1);
    auto child = bias_;
    auto knobs = knobs_;
    if (random_.chance(0.3))
      knobs.slack = std::clamp(knobs.slack + 0.06 * (random_.unit() - 0.5), 0.0, 0.6);
    const double share = random_.log_uniform(0.01, 0.5);
    for (auto& factor : child)
      if (random_.chance(share)) factor *= static_cast<float>(random_.log_uniform(0.5, 2));
    if (try_cover(knobs, child)) bias_ = std::move(child);
  }

  void vary_scores() {
    if (score_bias_.empty()) score_bias_.assign(graph_.storages.size(), 1);
    auto child = score_bias_;
    const double share = random_.log_uniform(0.01, 0.3);
    for (auto& factor : child)
      if (random_.chance(share)) factor *= static_cast<float>(random_.log_uniform(0.25, 4));
    if (try_score(score_, &child)) score_bias_ = std::move(child);
  }

  // It is costly, and not always needed.
  const Neighbourhood& near() {
    if (!near_) near_.emplace(graph_);
    return *near_;
  }

  void vary_ways() {
    auto from = trials_.here();
    if (change_ways(graph_, random_, trials_.walking(), from.plan, from.timetable))
      trials_.go(from.plan, from.timetable);
  }

  void vary_absences() {
    auto from = trials_.here();
    change_absences(graph_, timetable_, random_, from.plan);
    trials_.go(from.plan, from.timetable);
  }

  const Graph& graph_;
  const PlannerSettings& settings_;
  Timetable timetable_;
  std::optional<Neighbourhood> near_;
  SeededRandom random_;
  Trials trials_;
  PeakSearch peaks_;
  Knobs knobs_;
  size_t offers_ = 0;  // of all covers
  std::vector<float> bias_;
  NamedScore score_ = own_scores().front();  // the best of them
  std::vector<float> score_bias_;
  std::optional<Linked> linked_;  // the best of them
};

}  // namespace

Planned plan_step(const Graph& graph, const PlannerSettings& settings) {
  return Search(graph, settings).run();
}

}  // namespace tierpilot::swap
