// flopreduce: results go to standard output or -o FILE, everything else to standard error.
#include <cstdio>
#include <exception>
#include <string_view>

#include "commands/arguments/command.h"
#include "commands/arguments/manual.h"

int main(int argc, char** argv) {
  using namespace flopinj::reduce;
  try {
    for (const Command* command : commands())
      if (argc > 1 && std::string_view(argv[1]) == command->name)
        return command->run(argc - 1, argv + 1);
    if (argc == 3 && std::string_view(argv[1]) == "--generate") return generate(argv[2]);
    return kReport.run(argc, argv);
  } catch (const std::exception& e) {
    std::fprintf(stderr, "flopreduce: stopped: %s\n", e.what());
    return kExitPartial;
  }
}
