// What Nsight Compute prints as CSV: `ncu --csv --page raw`, a line for each kernel (wide), and
// `ncu --csv --metrics ...`, a line for each counter of each kernel (long).
//
// Words of ncu and of the program may be before, between and behind the lines. Kernels have no time
// line: ncu runs them one by one, over and over.
#pragma once
#include <import/timeline.h>

#include <deque>
#include <limits>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace flopinj::import {

// Whether a file that begins so is one. Of a file that begins with a program's output, the heading
// has to be in `first_bytes`.
bool is_nsight_compute(std::string_view first_bytes);

// Takes a file's lines without their ends, then finish(). One time line for each process.
class NsightCompute {
 public:
  explicit NsightCompute(std::deque<Timeline>& processes) : processes_(processes) {}

  void line(std::string_view);
  // The error, which says what to do; else an empty text.
  std::string finish();

 private:
  // What a column says, or in the long form a metric.
  enum class Kind : uint8_t {
    kNothing,
    kId,
    kProcess,
    kKernel,
    kContext,
    kStream,
    kBlock,
    kGrid,
    kDevice,
    kCapability,
    kRanges,
    kMetricName,
    kMetricUnit,
    kMetricValue,
    kCounter,
    kOther,  // a metric that no report reads: it shows how numbers are written
    kDeviceName,
    kMultiprocessors,
    kRegisters,
    kStaticShared,
    kDynamicShared,
  };
  struct Meaning {
    Kind kind = Kind::kNothing;
    std::string counter;  // of kCounter
  };
  // A number by the two ways to write it: 1,234.5 and 1.234,5.
  struct Written {
    double point = kNone, comma = kNone;
  };
  static constexpr double kNone = std::numeric_limits<double>::quiet_NaN();
  struct Cell {
    Timeline* process;
    uint32_t kernel;  // index of its kernels
    uint32_t metric;  // index of its metrics
    Written number;
  };
  // A kernel whose lines are being read.
  struct Row {
    bool any = false;
    std::string id, process, kernel, ranges, capability, device_name;
    std::string grid, block;
    Stream stream;
    uint32_t multiprocessors = 0;
    Shape shape;
    std::vector<std::pair<std::string, Written>> counters;
  };
  // Ranges of a process's thread that are open, by the names that ncu has for them.
  struct Open {
    std::string written;
    uint32_t range;  // index of Timeline::ranges
  };
  struct Process {
    Timeline* timeline = nullptr;
    std::unordered_map<uint32_t, std::vector<Open>> open;  // by thread
  };

  static Meaning meaning_of(std::string_view heading);
  void split(std::string_view line);
  void read_heading();
  void read_row();
  void take(const Meaning&, std::string_view unit, std::string_view value);
  void finish_row();
  void enter_ranges(Process&, uint32_t thread, std::string_view ranges);
  std::string_view cell(Kind) const;
  Written read_number(std::string_view);
  std::string decide_marks();
  std::string lacking() const;

  std::deque<Timeline>& processes_;
  std::unordered_map<std::string, Process> by_id_;
  std::vector<std::string> fields_;  // of the line, without quotes
  std::vector<Meaning> columns_;
  std::vector<std::string> units_;
  std::unordered_map<std::string, Meaning> metrics_;  // of the long form
  bool long_ = false, units_read_ = false;
  Row row_;
  int64_t now_ = 0;  // counts launches
  std::vector<Cell> cells_;
  bool point_fits_ = true, comma_fits_ = true;            // with the numbers so far
  bool counts_by_point_ = true, counts_by_comma_ = true;  // all counts are whole then
  uint64_t unreadable_ = 0, rounded_ = 0;
};

}  // namespace flopinj::import
