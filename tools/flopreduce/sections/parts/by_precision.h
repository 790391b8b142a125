// FLOP of sets of launches by number format.
#pragma once
#include <string>
#include <vector>

#include "report/report.h"

namespace flopinj::reduce {

struct OneFormat {
  std::string format;
  Figure flop;        // of a precision
  Figure operations;  // of an integer format of the tensor cores
};

// Those that it used. `work`: of the same launches. `estimated`: of `flop`, of launches whose FLOP
// are an estimate; where it is not known, all of it may be.
std::vector<OneFormat> by_format(const Report& report, const Flop& flop, const Work& work,
                                 const Flop* estimated = nullptr);

}  // namespace flopinj::reduce
