// Commands of tierctl that run policies themselves. They need much that else tierctl does not: they
// are a program of their own, and tierctl becomes it.
#pragma once

#include <functional>

#include "tools/output/output.h"

namespace CLI {
class App;
}

namespace tierpilot::lab {

struct Context {
  Output output;
  std::function<int()> command;  // returns an ExitCode
};

void add_simulate(CLI::App& app, Context& context);
void add_quality(CLI::App& app, Context& context);
// Verbs of `policy`.
void add_train(CLI::App& policy, Context& context);
void add_evaluate(CLI::App& policy, Context& context);
// Verb of `unit`.
void add_rates(CLI::App& unit, Context& context);
// `model` and `predictor` with their verbs.
void add_model(CLI::App& app, Context& context);
void add_predictor(CLI::App& app, Context& context);
// Verbs of `predictor`.
void add_training(CLI::App& predictor, Context& context);
void add_prediction(CLI::App& predictor, Context& context);

}  // namespace tierpilot::lab
