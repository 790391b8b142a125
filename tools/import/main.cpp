// flopimport: makes traces of what other profilers have recorded. `flopinj import` is this program,
// and says what its options are; flopreduce runs it for an input that is no trace.
//
//   flopimport [--force] [--gpu NAME] [--counters CSV] -o OUT FILE...
//
// OUT is a file, standard output ("-") or a folder, which several FILEs need. Exit code: 0, all of
// them are traces now; 1, at least one is not, and a line says why; 2, the arguments are wrong.
#include <import/import.h>
#include <printable_text.h>
#include <sys/resource.h>
#include <unistd.h>

#include <exception>
#include <filesystem>
#include <iostream>
#include <new>
#include <string>
#include <string_view>
#include <vector>

namespace {

namespace fs = std::filesystem;
using flopinj::import::Imported;

// What a file makes us take is bounded, whatever is in it: a tenth of 160 GB of JSON.
constexpr rlim_t kMostMemory = rlim_t{16} << 30;
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr bool kBounded = false;  // a sanitizer maps far more than it uses
#else
constexpr bool kBounded = true;
#endif

struct Arguments {
  std::string to;
  bool force = false;
  flopinj::import::ImportOptions options;
  std::vector<std::string> files;
};

// Nothing said: they are right.
std::string read(int argc, char** argv, Arguments& arguments) {
  bool options = true;
  for (int i = 1; i < argc; ++i) {
    const std::string word = argv[i];
    if (options && word == "--") {
      options = false;
    } else if (options && word == "--force") {
      arguments.force = true;
    } else if (options &&
               (word == "-o" || word == "--output" || word == "--gpu" || word == "--counters")) {
      if (++i == argc) return word + " needs a name behind it";
      (word == "--gpu"        ? arguments.options.gpu
       : word == "--counters" ? arguments.options.counters
                              : arguments.to) = argv[i];
    } else if (options && word.starts_with("-") && word != "-") {
      return word + " is no option";
    } else {
      arguments.files.push_back(word);
    }
  }
  if (arguments.files.empty()) return "no file to import";
  if (arguments.to.empty()) return "-o says where the trace goes";
  return "";
}

// "train.pt.trace.json.gz" is "train".
std::string stem_of(const std::string& file) {
  fs::path name = fs::path(file).filename();
  for (const char* ending : {".gz", ".zst", ".json", ".csv", ".trace", ".pt"})
    if (name.extension() == ending) name = name.stem();
  return name.string();
}

bool import_to(const std::string& file, const std::string& to, const Arguments& arguments) {
  flopinj::SinkOptions options;
  options.force = arguments.force;
  Imported done;
  try {
    done = flopinj::import::import_file(file, arguments.options,
                                        [&] { return flopinj::open_sink(to, options); });
  } catch (const std::bad_alloc&) {
    done.error = "it needs more memory than there is";
  }
  if (!done.error.empty()) {
    std::cerr << flopinj::printable("flopinj import: " + file + ": " + done.error) << "\n";
    return false;
  }
  if (to != "-")
    std::cerr << flopinj::printable("flopinj import: " + to + ": " + std::to_string(done.launches) +
                                    " launches, recorded by " + done.profiler)
              << "\n";
  return true;
}

}  // namespace

int main(int argc, char** argv) {
  Arguments arguments;
  const std::string problem = read(argc, argv, arguments);
  const bool folder =
      !arguments.to.empty() && arguments.to != "-" &&
      (fs::is_directory(arguments.to) || arguments.to.ends_with('/') || arguments.files.size() > 1);
  if (!problem.empty() || (arguments.to == "-" && arguments.files.size() > 1)) {
    std::cerr << "flopinj import: "
              << (problem.empty() ? "standard output takes one file" : problem)
              << " (see flopinj import --help)\n";
    return 2;
  }
  const rlimit limit{kMostMemory, kMostMemory};
  if (kBounded) ::setrlimit(RLIMIT_AS, &limit);
  bool all = true;
  if (folder) {
    std::error_code error;
    fs::create_directories(arguments.to, error);
  }
  for (const std::string& file : arguments.files) {
    const std::string to =
        folder ? (fs::path(arguments.to) / (stem_of(file) + ".pb")).string() : arguments.to;
    all = import_to(file, to, arguments) && all;
  }
  return all ? 0 : 1;
}
