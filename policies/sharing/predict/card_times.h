// What features of GPUs tell of one that was not measured: times of the same job on several cards
// (s3_gavel_alone.csv, s3_zeus_power.csv and files like them).
#pragma once

#include <map>
#include <nlohmann/json_fwd.hpp>
#include <string>

#include "base/result.h"
#include "base/table/csv_table.h"

namespace tierpilot::sharing {

struct CardTimes {
  // Seconds of a step or an epoch by card, by job: its model and all that it was run with.
  std::map<std::string, std::map<std::string, double>> by_job;
  uint64_t skipped = 0;  // rows, of cards of which nothing is published, too
  std::string first_skipped;
};

// Columns gpu, model, batch, gpus and steps_s (of which one GPU counts), or gpu, dataset, network,
// batch_size, optimizer, power_limit_w and epoch_s (of which the most power counts).
bool is_card_times(const CsvTable& table);
Result<CardTimes> read_card_times(CsvTable& table);

// Each card left out in turn, of jobs that others of the same table ran; [] where there are none.
nlohmann::ordered_json study_card_times(const CardTimes& times);

}  // namespace tierpilot::sharing
