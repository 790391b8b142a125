// flopreduce schema: the JSON schema of a report.
#include <memory>

#include "commands/arguments/arguments.h"
#include "support/program_name.h"
#include "writers/writers.h"

namespace flopinj::reduce {
namespace {

Action define_schema(manual::CommandLine& app) {
  app.examples = {{typed("schema"), "every table and column of a report, with its meaning"}};
  const auto output = std::make_shared<OutputArguments>();
  output->add_file_to(app);
  return [output] {
    output->finish({});
    return write_output(*output, write_schema);
  };
}

}  // namespace

const ProgramCommand kSchema(
    {reducer_command("schema"),
     "Prints the JSON schema of a report with --format json: every table, and its columns with "
     "their "
     " types and meanings, which are those of the CSV and SQLite forms too. The "
     "file in share/flopinj is the same.",
     define_schema});

}  // namespace flopinj::reduce
