// Trains a small network on synthetic data: the command line.
#include <CLI/CLI.hpp>
#include <cinttypes>
#include <cstdio>
#include <iostream>
#include <map>
#include <nlohmann/json.hpp>

#include "training.h"

namespace {

struct Arguments {
  std::string model = "mlp";
  std::string mode = "plain";
  bool print_shapes = false;
  trainer::Ranges ranges = trainer::Ranges::kOn;
  bool no_ranges = false;
  trainer::TrainingOptions training{.workers = 4, .model = {}, .kernels = {}};
};

const std::map<std::string, trainer::Ranges> kRanges = {{"plain", trainer::Ranges::kOn},
                                                        {"pytorch", trainer::Ranges::kPyTorch},
                                                        {"off", trainer::Ranges::kOff}};
const std::map<std::string, trainer::Mode> kModes = {
    {"plain", trainer::Mode::kPlain},
    {"autograd-thread", trainer::Mode::kAutogradThread},
    {"graph", trainer::Mode::kGraph},
    {"streams", trainer::Mode::kStreams}};

void declare(CLI::App& app, Arguments& arguments) {
  trainer::TrainingOptions& training = arguments.training;
  app.add_option("--model", arguments.model, "Network: mlp or cnn")
      ->check(CLI::IsMember({"mlp", "cnn"}))
      ->capture_default_str();
  app.add_option("--mode", arguments.mode,
                 "How a step is run: plain, autograd-thread, graph or streams")
      ->check(CLI::IsMember(kModes))
      ->capture_default_str();
  app.add_option("--steps", training.steps, "Training steps; 0 needs no GPU")
      ->check(CLI::Range(0, 1'000'000'000))
      ->capture_default_str();
  app.add_option("--batch", training.model.batch, "Samples per step")
      ->check(CLI::Range(1, 65536))
      ->capture_default_str();
  app.add_option("--lr", training.model.learning_rate, "Learning rate")
      ->check(CLI::Range(0.0, 100.0))
      ->capture_default_str();
  app.add_option("--momentum", training.model.momentum, "Momentum; 0 is plain gradient descent")
      ->check(CLI::Range(0.0, 1.0))
      ->capture_default_str();
  app.add_option("--seed", training.seed, "Seed of the data and the initial weights")
      ->capture_default_str();
  app.add_option("--workers", training.workers, "Threads, streams and replicas in --mode streams")
      ->check(CLI::Range(1, 64))
      ->capture_default_str();
  app.add_option("--warm-up", training.warm_up, "Eager steps before the capture in --mode graph")
      ->check(CLI::Range(0, 1'000'000'000))
      ->capture_default_str();
  app.add_option("--log-every", training.log_every, "Steps between reports of the loss, on stderr")
      ->check(CLI::Range(1, 1'000'000'000))
      ->capture_default_str();
  app.add_option("--sleep-ms", training.sleep_ms, "Pause between steps, in milliseconds")
      ->check(CLI::Range(0, 3'600'000))
      ->capture_default_str();
  app.add_option("--kernels", training.kernels,
                 "Kernel module; default: the first beside the executable that the driver accepts");
  app.add_flag("--print-shapes", arguments.print_shapes,
               "Print the layers' shapes as one line of JSON on stdout before training");
  app.add_option(
         "--ranges", arguments.ranges,
         "NVTX ranges: plain (phases and layers), pytorch (operators with sizes and sequence "
         "numbers too, as emit_nvtx pushes them) or off")
      ->transform(CLI::CheckedTransformer(kRanges));
  app.add_flag("--norange", arguments.no_ranges, "Train without NVTX ranges: --ranges off");
}

void print_shapes(const trainer::NetworkSpec& network, const Arguments& arguments) {
  const trainer::TrainingOptions& training = arguments.training;
  nlohmann::json json = trainer::to_json(network);
  json["batch"] = training.model.batch;
  json["steps"] = training.steps;
  json["mode"] = arguments.mode;
  json["workers"] = training.workers;
  json["momentum"] = training.model.momentum;
  json["mean_loss_threads"] = trainer::kMeanLossThreads;
  std::cout << json.dump() << std::endl;
}

void report_loss(trainer::Mode mode, int worker, int step, float loss) {
  if (mode == trainer::Mode::kStreams) std::fprintf(stderr, "worker %d ", worker);
  std::fprintf(stderr, "step %d loss %.9g\n", step, static_cast<double>(loss));
}

}  // namespace

int main(int argc, char** argv) {
  Arguments arguments;
  CLI::App app("Trains a small network on synthetic data, on a GPU.", "trainer");
  declare(app, arguments);
  try {
    app.parse(argc, argv);
  } catch (const CLI::Success& help) {
    return app.exit(help);
  } catch (const CLI::ParseError& error) {
    std::fprintf(stderr, "trainer: %s; see trainer --help\n", error.what());
    return 2;
  }

  trainer::TrainingOptions& training = arguments.training;
  training.mode = kModes.at(arguments.mode);
  training.workers = training.mode == trainer::Mode::kStreams ? training.workers : 1;
  training.ranges = arguments.no_ranges ? trainer::Ranges::kOff : arguments.ranges;
  training.model.operator_ranges = training.ranges == trainer::Ranges::kPyTorch;
  training.model.seed = training.seed;
  const trainer::NetworkSpec network =
      arguments.model == "mlp" ? trainer::mlp_network() : trainer::cnn_network();
  if (arguments.print_shapes) print_shapes(network, arguments);
  if (training.steps == 0) return 0;

  try {
    const uint64_t hash = trainer::train(network, training, [&](int worker, int step, float loss) {
      report_loss(training.mode, worker, step, loss);
    });
    std::fprintf(stderr, "weights %016" PRIx64 "\n", hash);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "trainer: %s\n", error.what());
    return 1;
  }
  return 0;
}
