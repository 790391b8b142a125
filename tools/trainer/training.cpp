#include "training.h"

#include <pthread.h>
#include <xxhash.h>

#include <chrono>
#include <mutex>
#include <optional>
#include <string>
#include <thread>

#include "backward_thread.h"
#include "dataset.h"

namespace trainer {
namespace {

constexpr int kBatches = 8;  // then the data repeats

// One model on one stream, trained by one host thread.
class Replica {
 public:
  Replica(const Context& context, const Kernels& kernels, const NetworkSpec& network,
          const TrainingOptions& options, int worker)
      : options_(options),
        stream_(context.api()),
        data_(network.input.size(), network.classes, options.model.batch, kBatches, options.seed,
              static_cast<uint64_t>(worker)),
        model_(stream_, kernels, network, options.model) {
    if (options.mode == Mode::kAutogradThread) backward_thread_.emplace(context);
  }

  // `report` takes the step and the loss.
  void run(const std::function<void(int, float)>& report) {
    for (int step = 0; step < options_.steps; ++step) {
      run_step(step);
      const int done = step + 1;
      if (done == 1 || done % options_.log_every == 0 || done == options_.steps) {
        report(done, model_.read_loss());
      }
      if (options_.sleep_ms > 0) {
        std::this_thread::sleep_for(std::chrono::milliseconds(options_.sleep_ms));
      }
    }
    stream_.synchronize();
  }

  uint64_t weights_hash() const { return model_.read_weights_hash(); }

 private:
  void run_step(int step) {
    const NvtxRange range(options_.ranges, "step");
    model_.set_batch(data_.samples(step), data_.labels(step));
    if (options_.mode != Mode::kGraph || step < options_.warm_up) {
      compute();
      return;
    }
    if (!graph_) {
      graph_.emplace(stream_);
      compute();
      graph_->finish();
    }
    graph_->launch();
  }

  // Everything of a step that runs on the GPU, except for the batch's copy.
  void compute() {
    const Ranges ranges = options_.ranges;
    {
      const NvtxRange range(ranges, "forward");
      model_.forward(ranges);
    }
    {
      const NvtxRange range(ranges, "loss");
      model_.loss();
    }
    {
      // A thread's ranges are its own: this one does not cover what the backward thread launches.
      const NvtxRange range(ranges, "backward");
      if (backward_thread_) {
        backward_thread_->run([this] { model_.backward(Ranges::kOff); });
      } else {
        // Autograd's ranges are its nodes'; layers have none.
        model_.backward(ranges == Ranges::kPyTorch ? Ranges::kOff : ranges);
      }
    }
    const NvtxRange range(ranges, "optimizer");
    model_.update();
  }

  const TrainingOptions& options_;
  Stream stream_;
  Dataset data_;
  Model model_;
  std::optional<CapturedGraph> graph_;
  std::optional<BackwardThread> backward_thread_;
};

// Runs one replica per thread; throws the first failure after all have ended.
uint64_t train_on_threads(const Context& context, const Kernels& kernels,
                          const NetworkSpec& network, const TrainingOptions& options,
                          const LossReport& report) {
  std::mutex mutex;
  std::exception_ptr failure;
  std::vector<uint64_t> hashes(static_cast<size_t>(options.workers));
  const auto work = [&](int worker) {
    pthread_setname_np(pthread_self(), ("worker_" + std::to_string(worker)).c_str());
    try {
      context.make_current();
      Replica replica(context, kernels, network, options, worker);
      replica.run([&](int step, float loss) {
        const std::lock_guard lock(mutex);
        report(worker, step, loss);
      });
      hashes[static_cast<size_t>(worker)] = replica.weights_hash();
    } catch (...) {
      const std::lock_guard lock(mutex);
      if (!failure) failure = std::current_exception();
    }
  };
  {
    std::vector<std::jthread> threads;
    for (int worker = 0; worker < options.workers; ++worker) threads.emplace_back(work, worker);
  }
  if (failure) std::rethrow_exception(failure);
  return XXH3_64bits(hashes.data(), hashes.size() * sizeof hashes[0]);
}

}  // namespace

uint64_t train(const NetworkSpec& network, const TrainingOptions& options,
               const LossReport& report) {
  // Before there are threads: NVTX would otherwise start in whichever makes the first range.
  if (options.ranges != Ranges::kOff) nvtxInitialize(nullptr);
  const DriverApi api;
  const Context context(api);
  const Kernels kernels(api, options.kernels);
  if (options.mode == Mode::kStreams)
    return train_on_threads(context, kernels, network, options, report);
  Replica replica(context, kernels, network, options, 0);
  replica.run([&](int step, float loss) { report(0, step, loss); });
  return replica.weights_hash();
}

}  // namespace trainer
