// What people type who know other profilers, launchers and shells, and what they mean by it here.
#pragma once
#include <string>
#include <vector>

#include "manual/command_line.h"

namespace flopinj {

// Options of perf, nsys, ncu, py-spy, memray or torchrun.
std::vector<manual::OthersOption> others_options();

// The line that is meant by words which begin with no command: "flopinj run -- python train.py" by
// "record python train.py". `root` has the commands, whose options are known by it. Empty: it is
// not known.
std::string line_meant_by(const std::vector<std::string>& words, const CLI::App& root);

// What to do about a program that does not exist, as the end of a sentence. `typed`: options of
// flopinj run before it.
std::string instead_of_program(const std::vector<std::string>& program,
                               const std::vector<std::string>& typed);

// What to type for `command -- program`, where the command takes no program.
std::string instead_of_command(const std::string& command, const std::vector<std::string>& program);

// Why what this program starts is not recorded, and what to type instead: of sudo, docker and their
// like, which hand variables on to nobody. Empty: nothing is known against it.
std::string where_it_is_not_seen(const std::vector<std::string>& program);

}  // namespace flopinj
