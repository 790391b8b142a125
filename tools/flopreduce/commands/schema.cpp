// flopreduce schema NAME: the JSON schema of a command's output.
#include <algorithm>
#include <array>
#include <memory>

#include "commands/arguments/arguments.h"
#include "commands/arguments/command.h"
#include "commands/arguments/output_file.h"
#include "commands/schemas.h"
#include "sections/explained/explanation.h"
#include "sections/screens/comparison.h"
#include "sections/sections.h"
#include "writers/json_writer.h"

namespace flopinj::reduce {
namespace {

struct Schema {
  const char* name;
  Json (*make)();
};
constexpr std::array kSchemas = {
    Schema{"report", report_schema},          Schema{"compare", comparison_schema},
    Schema{"explain", explanation_schema},    Schema{"peaks", peaks_schema},
    Schema{"project-train", training_schema}, Schema{"project-infer", inference_schema}};

Action define_schema(manual::CommandLine& app) {
  app.examples = {
      {"flopreduce schema report", "every field of the report's JSON, with its meaning"}};
  struct Arguments {
    std::string name;
    OutputArguments output;
  };
  const auto a = std::make_shared<Arguments>();
  std::vector<std::string> names;
  for (const Schema& schema : kSchemas) names.emplace_back(schema.name);
  app.add_option("NAME", a->name, "The command whose output it is")
      ->required()
      ->check(manual::one_of(names));
  a->output.add_file_to(app);
  return [a] {
    a->output.finish({});
    const auto schema = std::ranges::find(kSchemas, a->name, &Schema::name);
    return write_output(a->output, [&](std::ostream& out) { write_json(out, schema->make()); });
  };
}

}  // namespace

const Command kSchema = {
    "schema", "the JSON schema of a command's output",
    "Prints the JSON schema of what a command writes with --format json: every field, its type "
    "and its meaning. The files in share/flopinj are the same.",
    define_schema};

}  // namespace flopinj::reduce
