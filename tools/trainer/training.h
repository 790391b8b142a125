// The training loop in its four modes.
#pragma once
#include <cstdint>
#include <filesystem>
#include <functional>

#include "gpt/gpt.h"
#include "model.h"
#include "network.h"
#include "nvtx_range.h"
#include "trainable.h"

namespace trainer {

enum class Mode {
  kPlain,           // one thread, one stream
  kAutogradThread,  // backward on its own thread, which has no NVTX ranges
  kGraph,           // a few eager steps, then one step captured and replayed
  kStreams,         // `workers` threads, each with its own stream and replica of the model
};

struct TrainingOptions {
  Mode mode = Mode::kPlain;
  int steps = 20;
  int workers = 1;  // used by Mode::kStreams; replicas start alike and see different samples
  int warm_up = 3;  // eager steps before the capture in Mode::kGraph
  int log_every =
      5;  // a loss is reported after the first step, every so many steps and after the last
  int sleep_ms = 0;  // between steps
  Ranges ranges = Ranges::kOn;
  std::filesystem::path kernels;  // empty: the module beside the executable
};

// Called with the worker's number, the step (from 1) and its mean loss; never by two threads at a
// time.
using LossReport = std::function<void(int worker, int step, float loss)>;

// Returns the hash of the final weights (Trainable::read_weights_hash); in Mode::kStreams those of
// all workers, combined in their order. Throws CudaError.
uint64_t train(const NetworkSpec& network, const ModelOptions& model,
               const TrainingOptions& options, const LossReport& report);
uint64_t train(const GptOptions& gpt, const TrainingOptions& options, const LossReport& report);

}  // namespace trainer
