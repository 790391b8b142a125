// flopreduce anonymize: a trace without names, for others to look at.
#include "anonymous/anonymize.h"

#include <sys/random.h>

#include <fstream>
#include <memory>
#include <ostream>

#include "commands/arguments/arguments.h"
#include "sections/sections.h"
#include "support/program_name.h"
#include "support/text.h"

namespace flopinj::reduce {
namespace {

KeyedHash::Key key_from(const std::string& file) {
  KeyedHash::Key key{};
  if (file.empty()) {
    if (::getrandom(key.data(), sizeof key, 0) == static_cast<ssize_t>(sizeof key)) return key;
    throw Failure("the system gives no random key: name a file of your own with --key-file");
  }
  std::ifstream in(file, std::ios::binary);
  std::string secret(4096, '\0');
  in.read(secret.data(), static_cast<std::streamsize>(secret.size()));
  secret.resize(static_cast<size_t>(in.gcount()));
  if (secret.size() < 16)
    throw Failure("--key-file " + printable(file) +
                  ": it takes a file with at least 16 random bytes, such as 'head -c 32 "
                  "/dev/urandom' makes");
  const KeyedHash mix({0, 1});
  return {mix.of("a" + secret), mix.of("b" + secret)};
}

Report report_of(std::unique_ptr<Input> input) {
  ReduceOptions options;
  options.launch_times = true;
  Reducer reducer(options);
  reducer.add(std::move(input));
  if (!reducer.any_input())
    throw Failure(reducer.errors().empty() ? "nothing in it" : reducer.errors().front().message,
                  kExitNothing);
  return reducer.run();
}

struct AnonymizeArguments {
  std::string trace, key_file;
  AnonymizeOptions options;
  OutputArguments output;
};

int write_anonymous(const AnonymizeArguments& arguments) {
  const AnonymousNames names(KeyedHash(key_from(arguments.key_file)));
  auto opened = Input::open(arguments.trace);
  if (const auto* error = std::get_if<InputError>(&opened))
    throw Failure(error->message, kExitNothing);
  auto input = std::move(std::get<std::unique_ptr<Input>>(opened));
  DamageLog damage;
  const std::string bytes = anonymize(*input, names, arguments.options, damage);
  const Report before = report_of(std::move(input));
  const Report after =
      report_of(Input::from_memory("the anonymous trace", bytes.data(), bytes.size()));
  if (const auto key = first_difference(report_tables(before), report_tables(after)))
    throw Failure("not written: without its names the report would have other figures (" + *key +
                  "); --keep-ranges and --keep-kernels keep the names that figures depend on");
  const int code = write_output(arguments.output, [&](std::ostream& out) { out << bytes; });
  if (code == kExitFine && damage.partial())
    throw Failure(printable(arguments.trace) + ": damaged parts are left out", kExitPartial);
  return code;
}

Action define_anonymize(manual::CommandLine& app) {
  app.notes =
      "What stays: numbers, times of day, sizes of tensors, ranks, process ids, the device's name, "
      "versions, and short numbers in names. Look at the result before it is sent. "
      "Equal names have equal pseudonyms in one file, and in all files that were written "
      "with one --key-file; ranks of a job that were written with one can be joined afterwards.";
  app.examples = {{typed("anonymize -o shown.pb rank0.pb"), "a trace without names"},
                  {"head -c 32 /dev/urandom > key",
                   "a secret of your own, and traces that can be compared: --key-file key"}};
  const auto a = std::make_shared<AnonymizeArguments>();
  app.add_option("TRACE", a->trace, "A trace or summary; '-' reads standard input")->required();
  app.add_flag("--keep-ranges", a->options.keep_ranges,
               "Keep the names of ranges, their domains and threads");
  app.add_flag("--keep-kernels", a->options.keep_kernels, "Keep the names of kernels");
  app.add_option("--key-file", a->key_file,
                 "A secret of 16 bytes or more: equal names have equal pseudonyms in all files "
                 "that are written with it. If not given: a new secret each time")
      ->type_name("FILE");
  a->output.add_file_to(app);
  a->output.makes_traces = true;
  return [a] {
    a->output.finish(a->key_file.empty() ? std::vector{a->trace}
                                         : std::vector{a->trace, a->key_file});
    a->output.refuse_terminal("a trace");
    return write_anonymous(*a);
  };
}

}  // namespace

const ProgramCommand kAnonymize(
    {reducer_command("anonymize"),
     "Writes a copy of a trace or summary that does not say whose it is, to be sent to others. "
     "Names of program, host, job, ranges, threads and kernels become pseudonyms, identifier by "
     "identifier; kept are operators with a formula, and words that figures depend on. Command "
     "lines and texts of diagnostics are left out; identifiers of devices, sessions and "
     "code are replaced. All figures stay the same: the reports of both are compared, and if a "
     "figure differs nothing is written.",
     define_anonymize});

}  // namespace flopinj::reduce
