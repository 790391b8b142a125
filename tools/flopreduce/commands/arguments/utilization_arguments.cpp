#include "commands/arguments/utilization_arguments.h"

#include "commands/arguments/command.h"
#include "support/si_number.h"
#include "support/text.h"

namespace flopinj::reduce {

void UtilizationArguments::add_peaks_to(manual::CommandLine& app) {
  app.add_option(
         "--peak", peaks_,
         "A peak for utilization, such as tensor_bf16=989T or "
         "memory=4.8T (FLOP/s, B/s). DEVICE is a device's whole name, or a part of it that is "
         "no other product's name")
      ->type_name("[DEVICE:]PRECISION=VALUE")
      ->take_all()
      ->allow_extra_args(false);
}

void UtilizationArguments::add_to(manual::CommandLine& app) {
  add_peaks_to(app);
  app.add_option("--formula-flop", formula_flop_,
                 "FLOP by formula of everything that the traces hold, for MFU")
      ->type_name("NUMBER");
  app.add_option("--forward-flop", forward_flop_,
                 "FLOP by formula of the forward passes that the traces hold, for method theory")
      ->type_name("NUMBER");
  app.add_option("--batch-size", batch_size_, "Examples in one batch; 1 gives method one")
      ->type_name("NUMBER");
  app.add_option("--skip-steps", skip_steps_,
                 "Leave the first N training steps of each process out of the figures per step and "
                 "of the steady state (0)")
      ->type_name("N");
  app.add_option("--tokens-per-step", tokens_per_step_,
                 "Tokens that all processes in the traces train on in one step, for tokens/s")
      ->type_name("NUMBER");
  app.add_option("--parameters", parameters_,
                 "Parameters of the model: with --tokens-per-step, MFU is 6 x parameters x tokens "
                 "(6ND) of all steps")
      ->type_name("NUMBER");
}

void UtilizationArguments::finish(UtilizationOptions& options) {
  for (const auto& text : peaks_) {
    auto parsed = parse_peak(text);
    if (!parsed.error.empty()) throw Failure(parsed.error);
    options.peaks.push_back(std::move(parsed.value));
  }
  struct Number {
    const char *option, *example;
    const std::string& text;
    std::optional<double>& value;
  };
  options.skip_steps = skip_steps_;
  for (const Number& n :
       {Number{"--formula-flop", "1.2T", formula_flop_, options.formula_flop},
        Number{"--forward-flop", "1.2T", forward_flop_, options.forward_flop},
        Number{"--batch-size", "64", batch_size_, options.batch_size},
        Number{"--tokens-per-step", "4M", tokens_per_step_, options.tokens_per_step},
        Number{"--parameters", "7G", parameters_, options.parameters}}) {
    if (n.text.empty()) continue;
    n.value = parse_si(n.text);
    if (!n.value || *n.value <= 0)
      throw Failure(std::string(n.option) + " " + printable(cut(n.text, 60)) +
                    ": must be a number above 0, such as " + n.example);
  }
  if (options.parameters && !options.tokens_per_step)
    throw Failure("--parameters needs --tokens-per-step: 6ND is of the tokens of a step");
}

void UtilizationArguments::check(const Report& report) {
  const auto& unused = report.utilization.unused_overrides;
  if (unused.empty()) return;
  std::string names;
  for (const auto& device : report.utilization.devices)
    names += (names.empty() ? "" : ", ") + printable(cut(device.name, 100));
  throw Failure("--peak '" + printable(cut(unused[0], 100)) +
                ":...': no device in these traces is named so; they have " +
                (names.empty() ? "none" : names));
}

}  // namespace flopinj::reduce
