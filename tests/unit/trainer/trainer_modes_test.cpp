// Who launches what, from which thread and under which ranges, in each mode of the trainer.
#include <map>

#include "catch.h"
#include "launch_recorder.h"
#include "training.h"

namespace {

using trainer::Mode;

struct Recording {
  std::vector<LaunchCall> calls;
  std::vector<KernelExecution> executions;
};

Recording record(trainer::TrainingOptions options) {
  options.kernels = TRAINER_KERNELS;
  const trainer::DriverApi api;  // the library is initialised before it is observed
  const LaunchRecorder recorder;
  trainer::train(trainer::mlp_network(), {.batch = 4}, options, [](int, int, float) {});
  return {recorder.calls(), recorder.executions()};
}

Recording record(Mode mode, int steps, int workers = 1,
                 trainer::Ranges ranges = trainer::Ranges::kOn) {
  trainer::TrainingOptions options;
  options.mode = mode;
  options.steps = steps;
  options.workers = workers;
  options.ranges = ranges;
  return record(options);
}

// The perceptron's step, launch by launch: the range path and the kernel.
const std::vector<std::pair<std::string, std::string>> kStep = {
    {"step/forward/layer:fc1", "dense_forward"},
    {"step/forward/layer:relu1", "relu_forward"},
    {"step/forward/layer:fc2", "dense_forward"},
    {"step/forward/layer:relu2", "relu_forward"},
    {"step/forward/layer:fc3", "dense_forward"},
    {"step/loss", "softmax_cross_entropy"},
    {"step/loss", "mean_loss"},
    {"step/backward/layer:fc3", "dense_input_gradient"},
    {"step/backward/layer:fc3", "dense_weight_gradient"},
    {"step/backward/layer:fc3", "bias_gradient"},
    {"step/backward/layer:relu2", "relu_backward"},
    {"step/backward/layer:fc2", "dense_input_gradient"},
    {"step/backward/layer:fc2", "dense_weight_gradient"},
    {"step/backward/layer:fc2", "bias_gradient"},
    {"step/backward/layer:relu1", "relu_backward"},
    {"step/backward/layer:fc1", "dense_weight_gradient"},
    {"step/backward/layer:fc1", "bias_gradient"},
    {"step/optimizer", "sgd"},
    {"step/optimizer", "sgd"},
    {"step/optimizer", "sgd"},
    {"step/optimizer", "sgd"},
    {"step/optimizer", "sgd"},
    {"step/optimizer", "sgd"},
};

bool is_backward(const std::string& path) { return path.starts_with("step/backward"); }

}  // namespace

TEST_CASE("plain: every launch lies in its phase's and its layer's range") {
  const Recording recording = record(Mode::kPlain, 2);
  REQUIRE(recording.calls.size() == 2 * kStep.size());
  for (size_t i = 0; i < recording.calls.size(); ++i) {
    INFO("launch " << i);
    CHECK(recording.calls[i].path == kStep[i % kStep.size()].first);
    CHECK(recording.calls[i].kernel == kStep[i % kStep.size()].second);
    CHECK(recording.calls[i].thread == recording.calls[0].thread);
  }
}

TEST_CASE("without ranges the same launches are made and no range is pushed") {
  const Recording recording = record(Mode::kPlain, 1, 1, trainer::Ranges::kOff);
  REQUIRE(recording.calls.size() == kStep.size());
  for (size_t i = 0; i < kStep.size(); ++i) {
    CHECK(recording.calls[i].path.empty());
    CHECK(recording.calls[i].kernel == kStep[i].second);
  }
}

TEST_CASE("autograd-thread: backward comes from pt_autograd_0, outside all ranges") {
  const Recording recording = record(Mode::kAutogradThread, 2);
  REQUIRE(recording.calls.size() == 2 * kStep.size());
  for (size_t i = 0; i < recording.calls.size(); ++i) {
    const auto& [path, kernel] = kStep[i % kStep.size()];
    INFO("launch " << i << ", " << kernel);
    CHECK(recording.calls[i].kernel == kernel);
    CHECK(recording.calls[i].path == (is_backward(path) ? "" : path));
    CHECK((recording.calls[i].thread == "pt_autograd_0") == is_backward(path));
  }
}

TEST_CASE("graph: after the warm-up one step is captured, and a launch per step replays it") {
  trainer::TrainingOptions options;
  options.mode = Mode::kGraph;
  options.warm_up = GENERATE(0, 3);
  const int steps = options.steps = options.warm_up + 3;
  const Recording recording = record(options);
  const size_t eager = static_cast<size_t>(options.warm_up) * kStep.size();

  // The eager steps, the captured one and a graph launch for each that remains.
  REQUIRE(recording.calls.size() == eager + kStep.size() + 3);
  for (size_t i = 0; i < recording.calls.size(); ++i) {
    const bool graph = i >= eager + kStep.size();
    CHECK(recording.calls[i].call == (graph ? "cuGraphLaunch" : "cuLaunchKernel"));
    CHECK(recording.calls[i].path == (graph ? "step" : kStep[i % kStep.size()].first));
  }
  REQUIRE(recording.executions.size() == static_cast<size_t>(steps) * kStep.size());
  for (size_t i = 0; i < recording.executions.size(); ++i) {
    CHECK(recording.executions[i].kernel == kStep[i % kStep.size()].second);
    CHECK((recording.executions[i].graph_id != 0) == (i >= eager));
  }
}

TEST_CASE("streams: each worker launches whole steps on a stream of its own") {
  const Recording recording = record(Mode::kStreams, 2, 3);
  REQUIRE(recording.calls.size() == 3 * 2 * kStep.size());
  std::map<std::string, std::vector<LaunchCall>> by_thread;
  for (const LaunchCall& call : recording.calls) by_thread[call.thread].push_back(call);
  for (const char* thread : {"worker_0", "worker_1", "worker_2"}) {
    const std::vector<LaunchCall>& calls = by_thread[thread];
    REQUIRE(calls.size() == 2 * kStep.size());
    for (size_t i = 0; i < calls.size(); ++i) {
      CHECK(calls[i].path == kStep[i % kStep.size()].first);
      CHECK(calls[i].kernel == kStep[i % kStep.size()].second);
    }
  }
  std::map<uint32_t, size_t> per_stream;
  for (const KernelExecution& execution : recording.executions) ++per_stream[execution.stream_id];
  CHECK(per_stream.size() == 3);
  for (const auto& [stream, count] : per_stream) CHECK(count == 2 * kStep.size());
}
