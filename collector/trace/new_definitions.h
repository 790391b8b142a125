// What the tables of names, functions and signatures have got since the trace was last told.
#pragma once
#include <collector/identity/signature_table.h>
#include <collector/ranges/range_path_table.h>
#include <collector/trace/trace_definitions.h>

namespace flopinj {

// Used by one thread; others may define things meanwhile. The tables must outlive it.
class NewDefinitions {
 public:
  NewDefinitions(const SignatureTable& signatures, RangePathTable& paths)
      : signatures_(signatures), paths_(paths) {}

  // Into signatures, functions, function_names, paths and strings: each definition once.
  void take(Definitions&);

 private:
  const SignatureTable& signatures_;
  RangePathTable& paths_;
  SignatureId last_signature_;
  FunctionId last_function_;
  PathId last_path_;
  StringId last_string_;
};

}  // namespace flopinj
