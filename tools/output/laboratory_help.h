// What tierctl says of the commands that the laboratory (tools/lab) runs for it, and the laboratory
// of its own.
#pragma once

namespace tierpilot::laboratory_help {

inline constexpr const char* kSimulate =
    "run a workload under several policies on a described cluster";
inline constexpr const char* kQuality = "predicted losses of training jobs";
inline constexpr const char* kQualityPredict =
    "how well the losses of recorded runs are foretold from their beginning";
inline constexpr const char* kModel = "what a model is made of";
inline constexpr const char* kModelDescribe = "the model card of an ONNX file";
inline constexpr const char* kPredictor = "what jobs will use of a unit, predicted and measured";
inline constexpr const char* kPredictorCollect =
    "train models of many architectures on one core or GPU, and measure what they use";
inline constexpr const char* kPredictorTrain =
    "predict use of a unit, memory and run time of trainings from their model cards";
inline constexpr const char* kPredictorPredict =
    "what a training will use of a core or GPU, its memory and its time, by its model card";
inline constexpr const char* kPredictorEvaluate =
    "predictors on measurements of jobs that they were not trained on";
inline constexpr const char* kPolicyTrain = "train a policy by simulation and write its weights";
inline constexpr const char* kPolicyEvaluate =
    "policies on a suite of simulated workloads, and a bound that none can beat";
inline constexpr const char* kUnitRates =
    "failure rates of units from a record, and how well they would have foretold it";

}  // namespace tierpilot::laboratory_help
