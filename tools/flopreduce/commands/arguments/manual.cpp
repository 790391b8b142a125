#include "commands/arguments/manual.h"

#include <iostream>
#include <string>

#include "commands/arguments/command.h"

namespace flopinj::reduce {

std::vector<manual::Command>* being_described = nullptr;

int generate(std::string_view form) {
  manual::Program program{"flopreduce",
                          FLOPINJ_VERSION,
                          "turn traces of libflopinj.so into a FLOP report",
                          {},
                          {"flopinj"}};
  being_described = &program.commands;
  for (const Command* command : commands()) {
    std::string name = command->name;
    char* arguments[] = {name.data(), nullptr};
    command->run(1, arguments);
    for (std::string word : command->words) {
      char* both[] = {name.data(), word.data(), nullptr};
      command->run(2, both);
    }
  }
  being_described = nullptr;
  return manual::write(std::cout, program, std::string(form)) && std::cout.flush() ? kExitFine
                                                                                   : kExitUsage;
}

}  // namespace flopinj::reduce
