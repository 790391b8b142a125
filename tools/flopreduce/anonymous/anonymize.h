// A trace or summary written anew without what says whose it is. Every field that holds text or an
// identifier has a treatment (anonymize.cpp lists them): names become pseudonyms
// (anonymous/names.h), as do the host, the program and the job; identifiers of devices, sessions,
// code and parameters become keyed hashes; the texts of diagnostics are left out. Numbers stay:
// every figure of its report is that of the original.
#pragma once
#include <google/protobuf/descriptor.h>

#include <optional>
#include <span>
#include <string>

#include "anonymous/names.h"
#include "reader/damage.h"
#include "reader/input.h"
#include "sections/parts/table.h"

namespace flopinj::reduce {

struct AnonymizeOptions {
  bool keep_ranges = false;   // names of ranges, their domains and threads
  bool keep_kernels = false;  // names of kernels
};

// Packets that are damaged are left out and logged; the rest keep their numbers, so that a report
// says as before that some are lost.
std::string anonymize(Input& input, const AnonymousNames& names, const AnonymizeOptions& options,
                      DamageLog& damage);

// Whether it is said what becomes of the field. One of text without a treatment is left out.
bool has_treatment(const google::protobuf::FieldDescriptor& field);

// Whether two reports have the same numbers, whatever the names: the first column that differs, as
// "kernels.flop", or nothing. Rows may be in another order, since rows of equal work are sorted by
// name. Identifiers are not compared, nor the bytes that damage took.
std::optional<std::string> first_difference(std::span<const Table> a, std::span<const Table> b);

}  // namespace flopinj::reduce
