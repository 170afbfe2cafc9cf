// What no list of jobs tells and is drawn: who slows whom, what is used of a unit, how far off
// predictions are, what is promised.
#pragma once

#include "base/random.h"
#include "policies/sim/sharing/timed_jobs.h"

namespace tierpilot::sharing {

uint32_t as_milli(double milli);
double draw_normal(SeededRandom& random);
// Of a job whose user asks for a unit.
uint32_t draw_need(SeededRandom& random);
// By how much more than it needs a user asks for a part of a unit.
double draw_overask(SeededRandom& random);
// A promise is so many times the predicted time.
double draw_promise_factor(SeededRandom& random);
void draw_pairs(SeededRandom& random, const TimedSettings& settings, TimedWorkload& into);
// As wrong as it was measured to be.
Predicted predict(SeededRandom& random, const TimedJob& job, const TimedSettings& settings);
// Asks for what users would ask for: by what they were told, not by what nobody knows.
void ask_for_promise(TimedJob& job, double factor, const TimedSettings& settings);
// To a policy that knows all.
void reveal(TimedJob& job, const TimedSettings& settings);

}  // namespace tierpilot::sharing
