#include "tools/demo/training_options.h"

#include "tools/output/arguments.h"

namespace tierpilot::demo {

void add_training_options(CLI::App& app, TrainingOptions& options) {
  app.add_option("--scale", options.scale, "of the jobs' iterations")
      ->check(number_between(0.01, 100.0))
      ->capture_default_str();
  app.add_option("--json", options.json_file, "write everything shown to this file")
      ->type_name("FILE");
  app.add_option("--script", options.script.file, "the training script")
      ->required()
      ->type_name("FILE");
  app.add_option("--python-path", options.script.python_path, "where the module tierpilot is")
      ->type_name("FOLDER");
}

void add_gap_option(CLI::App& app, double& gap_s) {
  app.add_option("--gap", gap_s, "seconds between two arrivals")
      ->check(number_between(0.0, 600.0))
      ->capture_default_str();
}

}  // namespace tierpilot::demo
