#include "training.h"

#include <pthread.h>
#include <xxhash.h>

#include <chrono>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>

#include "backward_thread.h"

namespace trainer {
namespace {

// Of one worker, on its stream; the stream must outlive it.
using ModelMaker = std::function<std::unique_ptr<Trainable>(const Stream&, int worker)>;

// One model on one stream, trained by one host thread.
class Replica {
 public:
  Replica(const Context& context, const ModelMaker& make_model, const TrainingOptions& options,
          int worker)
      : options_(options), stream_(context.api()), model_(make_model(stream_, worker)) {
    if (options.mode == Mode::kAutogradThread) backward_thread_.emplace(context);
  }

  // `report` takes the step and the loss.
  void run(const std::function<void(int, float)>& report) {
    for (int step = 0; step < options_.steps; ++step) {
      run_step(step);
      const int done = step + 1;
      if (done == 1 || done % options_.log_every == 0 || done == options_.steps) {
        report(done, model_->read_loss());
      }
      if (options_.sleep_ms > 0) {
        std::this_thread::sleep_for(std::chrono::milliseconds(options_.sleep_ms));
      }
    }
    stream_.synchronize();
  }

  uint64_t weights_hash() const { return model_->read_weights_hash(); }

 private:
  void run_step(int step) {
    const NvtxRange range(options_.ranges, "step");
    model_->set_batch(step);
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
    model_->begin_step();
    for (int i = 0; i < model_->micro_batches(); ++i) {
      model_->use_micro_batch(i);
      compute_gradients();
    }
    const NvtxRange range(options_.ranges, "optimizer");
    model_->update();
  }

  void compute_gradients() {
    const Ranges ranges = options_.ranges;
    {
      const NvtxRange range(ranges, "forward");
      model_->forward(ranges);
    }
    {
      const NvtxRange range(ranges, "loss");
      model_->loss();
    }
    // A thread's ranges are its own: this one does not cover what the backward thread launches.
    const NvtxRange range(ranges, "backward");
    if (backward_thread_) {
      backward_thread_->run(
          [&] { model_->backward(ranges == Ranges::kOn ? Ranges::kOff : ranges); });
    } else {
      model_->backward(ranges);
    }
  }

  const TrainingOptions& options_;
  Stream stream_;
  std::unique_ptr<Trainable> model_;
  std::optional<CapturedGraph> graph_;
  std::optional<BackwardThread> backward_thread_;
};

// Runs one replica per thread; throws the first failure after all have ended.
uint64_t train_on_threads(const Context& context, const ModelMaker& make_model,
                          const TrainingOptions& options, const LossReport& report) {
  std::mutex mutex;
  std::exception_ptr failure;
  std::vector<uint64_t> hashes(static_cast<size_t>(options.workers));
  const auto work = [&](int worker) {
    pthread_setname_np(pthread_self(), ("worker_" + std::to_string(worker)).c_str());
    try {
      context.make_current();
      Replica replica(context, make_model, options, worker);
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

// `load` takes the DriverApi and returns the maker, with the kernels that its models share.
template <class Load>
uint64_t train_models(const Load& load, const TrainingOptions& options, const LossReport& report) {
  // Before there are threads: NVTX would otherwise start in whichever makes the first range.
  if (options.ranges != Ranges::kOff) nvtxInitialize(nullptr);
  const DriverApi api;
  const Context context(api);
  const ModelMaker make_model = load(api);
  if (options.mode == Mode::kStreams) return train_on_threads(context, make_model, options, report);
  Replica replica(context, make_model, options, 0);
  replica.run([&](int step, float loss) { report(0, step, loss); });
  return replica.weights_hash();
}

}  // namespace

uint64_t train(const NetworkSpec& network, const ModelOptions& model,
               const TrainingOptions& options, const LossReport& report) {
  const auto load = [&](const DriverApi& api) {
    const auto kernels = std::make_shared<const Kernels>(api, options.kernels);
    return [&network, &model, kernels](const Stream& stream, int worker) {
      return std::make_unique<Model>(stream, *kernels, network, model,
                                     static_cast<uint64_t>(worker));
    };
  };
  return train_models(load, options, report);
}

uint64_t train(const GptOptions& gpt, const TrainingOptions& options, const LossReport& report) {
  const auto load = [&](const DriverApi& api) {
    const auto kernels = std::make_shared<const GptKernels>(api, options.kernels);
    return [&gpt, kernels](const Stream& stream, int worker) {
      return std::make_unique<Gpt>(stream, *kernels, gpt, static_cast<uint64_t>(worker));
    };
  };
  return train_models(load, options, report);
}

}  // namespace trainer
