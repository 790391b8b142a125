// Trains a small network on synthetic data: the command line.
#include <CLI/CLI.hpp>
#include <cinttypes>
#include <cstdio>
#include <iostream>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>

#include "training.h"

namespace {

struct Arguments {
  std::string model = "mlp";
  std::string mode = "plain";
  std::optional<int> batch;
  std::optional<float> learning_rate;
  uint64_t seed = 1;
  bool print_shapes = false;
  trainer::Ranges ranges = trainer::Ranges::kOn;
  bool no_ranges = false;
  trainer::ModelOptions network;
  trainer::GptOptions gpt;
  trainer::TrainingOptions training{.workers = 4, .kernels = {}};

  bool is_gpt() const { return model == "gpt"; }
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
  app.add_option("--model", arguments.model, "Network: mlp, cnn or gpt")
      ->check(CLI::IsMember({"mlp", "cnn", "gpt"}))
      ->capture_default_str();
  app.add_option("--mode", arguments.mode,
                 "How a step is run: plain, autograd-thread, graph or streams")
      ->check(CLI::IsMember(kModes))
      ->capture_default_str();
  app.add_option("--steps", training.steps, "Training steps; 0 needs no GPU")
      ->check(CLI::Range(0, 1'000'000'000))
      ->capture_default_str();
  app.add_option("--batch", arguments.batch,
                 "Samples per step, or sequences per micro-batch of the gpt; default: 32, gpt: 4")
      ->check(CLI::Range(1, 65536));
  app.add_option("--lr", arguments.learning_rate, "Learning rate; default: 0.1, gpt: 0.003")
      ->check(CLI::Range(0.0, 100.0));
  app.add_option("--momentum", arguments.network.momentum,
                 "Momentum of mlp and cnn; 0 is plain gradient descent")
      ->check(CLI::Range(0.0, 1.0))
      ->capture_default_str();
  app.add_option("--seed", arguments.seed, "Seed of the data and the initial weights")
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
                 "Kernel module; default: trainer_kernels.ptx beside the executable");
  app.add_flag("--print-shapes", arguments.print_shapes,
               "Print the layers' shapes as one line of JSON on stdout before training");
  app.add_option(
         "--ranges", arguments.ranges,
         "NVTX ranges: plain (phases and layers), pytorch (operators with sizes and sequence "
         "numbers too, as emit_nvtx pushes them) or off")
      ->transform(CLI::CheckedTransformer(kRanges));
  app.add_flag("--norange", arguments.no_ranges, "Train without NVTX ranges: --ranges off");
}

void declare_gpt(CLI::App& app, trainer::GptOptions& gpt) {
  const auto size = [&](const char* name, int& value, int most, const char* help) {
    app.add_option(name, value, help)
        ->check(CLI::Range(1, most))
        ->capture_default_str()
        ->group("GPT (--model gpt)");
  };
  size("--layers", gpt.sizes.layers, 128, "Blocks");
  size("--width", gpt.sizes.width, 16384, "Values of a token, a multiple of 32 for each head");
  size("--heads", gpt.sizes.heads, 256, "Heads of attention");
  size("--context", gpt.sizes.context, 65536, "Tokens of a sequence, a multiple of 32");
  size("--vocabulary", gpt.sizes.vocabulary, 1 << 20, "Kinds of tokens, a multiple of 32");
  size("--accumulate", gpt.micro_batches, 1024, "Micro-batches of a step, whose gradients add up");
  app.add_flag("--checkpoint", gpt.checkpoint,
               "Keep no block's activations: run its forward pass again in backward")
      ->group("GPT (--model gpt)");
}

nlohmann::json shapes_of(const trainer::NetworkSpec& network, const Arguments& arguments) {
  nlohmann::json json = trainer::to_json(network);
  json["batch"] = arguments.network.batch;
  json["momentum"] = arguments.network.momentum;
  json["mean_loss_threads"] = trainer::kMeanLossThreads;
  return json;
}

nlohmann::json shapes_of(const trainer::GptOptions& gpt) {
  nlohmann::json json = trainer::to_json(gpt.sizes);
  json["micro_batches"] = gpt.micro_batches;
  json["checkpoint"] = gpt.checkpoint;
  return json;
}

void print_shapes(nlohmann::json json, const Arguments& arguments) {
  json["steps"] = arguments.training.steps;
  json["mode"] = arguments.mode;
  json["workers"] = arguments.training.workers;
  std::cout << json.dump() << std::endl;
}

// What several options say together, in the options of the model and of the training.
void settle(Arguments& arguments) {
  trainer::TrainingOptions& training = arguments.training;
  training.mode = kModes.at(arguments.mode);
  training.workers = training.mode == trainer::Mode::kStreams ? training.workers : 1;
  training.ranges = arguments.no_ranges ? trainer::Ranges::kOff : arguments.ranges;
  const auto settle_model = [&](auto& model, int& batch) {
    batch = arguments.batch.value_or(batch);
    model.learning_rate = arguments.learning_rate.value_or(model.learning_rate);
    model.seed = arguments.seed;
    model.operator_ranges = training.ranges == trainer::Ranges::kPyTorch;
  };
  settle_model(arguments.network, arguments.network.batch);
  settle_model(arguments.gpt, arguments.gpt.sizes.batch);
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
  declare_gpt(app, arguments.gpt);
  try {
    app.parse(argc, argv);
  } catch (const CLI::Success& help) {
    return app.exit(help);
  } catch (const CLI::ParseError& error) {
    std::fprintf(stderr, "trainer: %s; see trainer --help\n", error.what());
    return 2;
  }

  settle(arguments);
  const trainer::TrainingOptions& training = arguments.training;
  const trainer::NetworkSpec network =
      arguments.model == "mlp" ? trainer::mlp_network() : trainer::cnn_network();
  if (arguments.is_gpt()) {
    if (const std::string problem = problem_of(arguments.gpt.sizes); !problem.empty()) {
      std::fprintf(stderr, "trainer: %s; see trainer --help\n", problem.c_str());
      return 2;
    }
  }
  if (arguments.print_shapes)
    print_shapes(arguments.is_gpt() ? shapes_of(arguments.gpt) : shapes_of(network, arguments),
                 arguments);
  if (training.steps == 0) return 0;

  try {
    const auto report = [&](int worker, int step, float loss) {
      report_loss(training.mode, worker, step, loss);
    };
    const uint64_t hash = arguments.is_gpt()
                              ? trainer::train(arguments.gpt, training, report)
                              : trainer::train(network, arguments.network, training, report);
    std::fprintf(stderr, "weights %016" PRIx64 "\n", hash);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "trainer: %s\n", error.what());
    return 1;
  }
  return 0;
}
