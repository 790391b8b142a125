#include <collector/trace/new_definitions.h>

namespace flopinj {

// Every list is taken after the lists that refer to it, and written before them: another thread may
// define something between two of these lines, and its definition may refer to something just as
// new.
void NewDefinitions::take(Definitions& d) {
  d.signatures = signatures_.signatures_after(last_signature_);
  d.functions = signatures_.functions_after(last_function_);
  for (const KernelFunction* function : d.functions)
    d.function_names.push_back(paths_.intern_string(function->info.name));
  d.paths = paths_.paths_after(last_path_);
  d.strings = paths_.strings_after(last_string_);

  if (!d.signatures.empty()) last_signature_ = d.signatures.back()->id;
  if (!d.functions.empty()) last_function_ = d.functions.back()->id;
  if (!d.paths.empty()) last_path_ = d.paths.back().id;
  if (!d.strings.empty()) last_string_ = d.strings.back().id;
}

}  // namespace flopinj
