#include <collector/ranges/range_name.h>
#include <import/nsight_systems.h>
#include <sqlite3.h>

#include <algorithm>
#include <array>
#include <initializer_list>
#include <memory>
#include <optional>
#include <stdexcept>

namespace flopinj::import {
namespace {

// A global id of Nsight Systems has the machine, the process and the thread, 24 bits each.
constexpr int kIdBits = 24;
constexpr int64_t kIdMask = (int64_t{1} << kIdBits) - 1;
constexpr int64_t process_of(int64_t global) { return global & ~kIdMask; }

struct Unreadable : std::runtime_error {
  using std::runtime_error::runtime_error;
};

class Database {
 public:
  explicit Database(const std::string& file) {
    if (sqlite3_open_v2(file.c_str(), &db_, SQLITE_OPEN_READONLY, nullptr) != SQLITE_OK) fail();
    sqlite3_db_config(db_, SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0, nullptr);
  }
  ~Database() { sqlite3_close(db_); }
  Database(const Database&) = delete;
  Database& operator=(const Database&) = delete;

  sqlite3* get() const { return db_; }
  [[noreturn]] void fail() const {
    throw Unreadable(std::string("it cannot be read: ") + sqlite3_errmsg(db_));
  }

 private:
  sqlite3* db_ = nullptr;
};

// The rows of one table, by columns that are asked for in an order of their own. A column that the
// table does not have is null in all rows, and a table that is not there has no rows.
class Rows {
 public:
  Rows(const Database& db, const std::string& table, std::initializer_list<const char*> columns)
      : db_(db) {
    std::string list;
    bool any = false;
    for (const char* column : columns) {
      const bool there =
          sqlite3_table_column_metadata(db.get(), nullptr, table.c_str(), column, nullptr, nullptr,
                                        nullptr, nullptr, nullptr) == SQLITE_OK;
      any = any || there;
      list += (list.empty() ? "" : ", ") + (there ? '"' + std::string(column) + '"' : "NULL");
    }
    if (!any) return;
    const std::string query = "SELECT " + list + " FROM \"" + table + '"';
    if (sqlite3_prepare_v2(db.get(), query.c_str(), -1, &statement_, nullptr) != SQLITE_OK)
      db.fail();
  }
  ~Rows() { sqlite3_finalize(statement_); }
  Rows(const Rows&) = delete;
  Rows& operator=(const Rows&) = delete;

  bool there() const { return statement_ != nullptr; }
  bool next() {
    if (statement_ == nullptr) return false;
    const int result = sqlite3_step(statement_);
    if (result != SQLITE_ROW && result != SQLITE_DONE) db_.fail();
    return result == SQLITE_ROW;
  }
  bool null(int column) const { return sqlite3_column_type(statement_, column) == SQLITE_NULL; }
  int64_t whole(int column) const { return sqlite3_column_int64(statement_, column); }
  uint32_t small(int column) const { return static_cast<uint32_t>(whole(column)); }
  std::string_view text(int column) const {
    const unsigned char* bytes = sqlite3_column_text(statement_, column);
    if (bytes == nullptr) return {};
    return {reinterpret_cast<const char*>(bytes),
            static_cast<size_t>(sqlite3_column_bytes(statement_, column))};
  }

 private:
  const Database& db_;
  sqlite3_stmt* statement_ = nullptr;
};

// Events of NVTX (ENUM_NSYS_EVENT_TYPE).
enum NvtxEvent : int64_t {
  kPushPop = 59,
  kStartEnd = 60,
  kPushPopWithPayload = 70,
  kStartEndWithPayload = 71,
  kDomain = 75,
};

class Report {
 public:
  Report(const std::string& file, std::deque<Timeline>& processes)
      : db_(file), processes_(processes) {}

  std::string read() {
    if (Rows(db_, "figures", {"launches", "flop"}).there())
      return "it is a report of flopinj's as SQLite: sqlite3 reads it; give the trace that it was "
             "made of (*.pb)";
    if (!Rows(db_, "StringIds", {"id", "value"}).there())
      return "it is an SQLite database, and none of nsys export --type sqlite REPORT.nsys-rep";
    read_strings();
    read_kernels();
    read_graphs();
    if (by_process_.empty())
      return "no kernel is in it: record with nsys profile --trace=cuda,nvtx, and export again";
    read_devices();
    read_calls();
    read_domains();
    read_ranges();
    read_threads();
    read_copies();
    read_gpu_metrics();
    read_start();
    for (const auto& [id, at] : by_process_) {
      Timeline& t = *at;
      t.process.pid = static_cast<uint32_t>(id >> kIdBits & kIdMask);
    }
    return {};
  }

 private:
  // Null: of a process without kernels, which is left out.
  Timeline* known(int64_t global) const {
    const auto found = by_process_.find(process_of(global));
    return found == by_process_.end() ? nullptr : found->second;
  }
  Timeline& of(int64_t global) {
    Timeline*& timeline = by_process_[process_of(global)];
    if (timeline == nullptr) timeline = &processes_.emplace_back();
    return *timeline;
  }
  // The string that a column names.
  std::string_view string(const Rows& rows, int column) const {
    const auto found = rows.null(column) ? strings_.end() : strings_.find(rows.whole(column));
    return found == strings_.end() ? std::string_view() : std::string_view(found->second);
  }
  static uint32_t thread(Timeline& t, int64_t global) {
    return t.thread(global >> kIdBits & kIdMask, global & kIdMask);
  }

  void read_strings() {
    for (Rows rows(db_, "StringIds", {"id", "value"}); rows.next();)
      strings_.emplace(rows.whole(0), rows.text(1));
  }

  void add_kernel(Timeline& t, const Rows& rows, std::string_view name, const Shape& shape) {
    Kernel kernel;
    kernel.start_ns = rows.whole(0);
    kernel.end_ns = std::max(rows.whole(1), kernel.start_ns);
    const Stream stream{rows.small(2), rows.small(3), rows.small(4)};
    kernel.correlation = static_cast<uint64_t>(rows.whole(5));
    kernel.name = t.texts.id(name);
    kernel.stream = t.streams.index(stream, stream);
    kernel.shape = t.shapes.index(shape.key(), shape);
    t.devices.try_emplace(stream.device);
    t.kernels.push_back(kernel);
  }

  void read_kernels() {
    Rows rows(db_, "CUPTI_ACTIVITY_KIND_KERNEL",
              {"start",
               "end",
               "deviceId",
               "contextId",
               "streamId",
               "correlationId",
               "globalPid",
               "mangledName",
               "demangledName",
               "shortName",
               "registersPerThread",
               "gridX",
               "gridY",
               "gridZ",
               "blockX",
               "blockY",
               "blockZ",
               "staticSharedMemory",
               "dynamicSharedMemory",
               "clusterX",
               "clusterY",
               "clusterZ"});
    while (rows.next()) {
      std::string_view name;
      for (int column = 7; column <= 9 && name.empty(); ++column) name = string(rows, column);
      Shape shape;
      shape.registers = rows.small(10);
      for (int i = 0; i < 3; ++i) {
        const auto at = static_cast<size_t>(i);
        shape.launch.grid[at] = rows.small(11 + i);
        shape.launch.block[at] = rows.small(14 + i);
        shape.launch.cluster[at] = rows.small(19 + i);
      }
      shape.static_shared_bytes = rows.small(17);
      shape.launch.dynamic_shared_bytes = rows.small(18);
      add_kernel(of(rows.whole(6)), rows, name, shape);
    }
  }

  // Graphs that were recorded whole: which kernels ran in them is not known.
  void read_graphs() {
    Rows rows(db_, "CUPTI_ACTIVITY_KIND_GRAPH_TRACE",
              {"start", "end", "deviceId", "contextId", "streamId", "correlationId", "globalPid",
               "graphId"});
    while (rows.next())
      add_kernel(of(rows.whole(6)), rows,
                 "(CUDA graph " + std::to_string(rows.whole(7)) +
                     ", whose kernels are not in the recording)",
                 Shape());
  }

  // By number of the GPU, and of the CUDA device in its process where the file says that.
  void read_devices() {
    std::map<int64_t, DeviceInfo> gpus;
    for (Rows rows(db_, "TARGET_INFO_GPU",
                   {"id", "name", "chipName", "computeMajor", "computeMinor", "smCount",
                    "totalMemory", "clockRate"});
         rows.next();) {
      DeviceInfo& gpu = gpus[rows.whole(0)];
      gpu.name = rows.text(1);
      gpu.chip = rows.text(2);
      gpu.compute_major = rows.small(3);
      gpu.compute_minor = rows.small(4);
      gpu.multiprocessors = rows.small(5);
      gpu.memory_bytes = static_cast<uint64_t>(rows.whole(6));
      gpu.clock_khz = static_cast<uint32_t>(rows.whole(7) / 1000);  // from Hz
    }
    std::map<int64_t, int64_t> of_device;
    for (Rows rows(db_, "TARGET_INFO_CUDA_DEVICE", {"cudaId", "gpuId"}); rows.next();)
      if (!rows.null(1)) of_device[rows.whole(0)] = rows.whole(1);
    for (Timeline& t : processes_)
      for (auto& [ordinal, info] : t.devices) {
        const auto known = of_device.find(ordinal);
        const auto gpu = gpus.find(known != of_device.end() ? known->second : ordinal);
        if (gpu != gpus.end()) info = gpu->second;
      }
  }

  void read_calls() {
    for (const char* table : {"CUPTI_ACTIVITY_KIND_RUNTIME", "CUPTI_ACTIVITY_KIND_DRIVER"}) {
      Rows rows(db_, table, {"start", "globalTid", "correlationId", "nameId"});
      while (rows.next()) {
        Timeline* const t = known(rows.whole(1));
        if (t == nullptr || rows.whole(2) == 0) continue;
        Call call;
        call.correlation = static_cast<uint64_t>(rows.whole(2));
        call.start_ns = rows.whole(0);
        call.thread = thread(*t, rows.whole(1));
        call.graph = string(rows, 3).find("GraphLaunch") != std::string_view::npos;
        t->calls.push_back(call);
      }
    }
  }

  void read_domains() {
    for (Rows rows(db_, "NVTX_EVENTS", {"eventType", "globalTid", "domainId", "text", "textId"});
         rows.next();)
      if (rows.whole(0) == kDomain)
        domains_[{process_of(rows.whole(1)), rows.whole(2)}] =
            rows.null(3) ? string(rows, 4) : rows.text(3);
  }

  void read_ranges() {
    Rows rows(db_, "NVTX_EVENTS",
              {"eventType", "start", "end", "globalTid", "domainId", "text", "textId"});
    std::string key;
    while (rows.next()) {
      const int64_t type = rows.whole(0);
      const bool of_process = type == kStartEnd || type == kStartEndWithPayload;
      if (!of_process && type != kPushPop && type != kPushPopWithPayload) continue;
      Timeline* const t = known(rows.whole(3));
      if (t == nullptr) continue;
      Range range;
      range.start_ns = rows.whole(1);
      range.end_ns = rows.null(2) ? Range::kStillOpen : rows.whole(2);
      if (range.end_ns < range.start_ns) continue;
      const std::string_view text = rows.null(5) ? string(rows, 6) : rows.text(5);
      range.sequence_plus_1 = parse_range_name(text, key) & Range::kMostSequence;
      Name name{t->texts.id(key), 0};
      if (const auto domain = domains_.find({process_of(rows.whole(3)), rows.whole(4)});
          domain != domains_.end())
        name.domain = t->texts.id(domain->second);
      range.name = t->names.index(name, name);
      if (!of_process) range.thread = thread(*t, rows.whole(3)) & Range::kMostThreads;
      range.order = static_cast<uint32_t>(t->ranges.size());
      t->ranges.push_back(range);
    }
  }

  void read_threads() {
    for (Rows rows(db_, "ThreadNames", {"globalTid", "nameId"}); rows.next();)
      if (Timeline* const t = known(rows.whole(0)))
        t->threads[thread(*t, rows.whole(0))].name = string(rows, 1);
  }

  void read_copies() {
    // ENUM_CUDA_MEMCPY_OPER, and kind 0 of ENUM_CUDA_MEM_KIND, which is pageable memory.
    constexpr auto kKinds = std::to_array<std::pair<int64_t, CopyKind>>({
        {1, CopyKind::kHostToDevice},
        {2, CopyKind::kDeviceToHost},
        {8, CopyKind::kWithinDevice},
        {9, CopyKind::kHostToHost},
        {10, CopyKind::kBetweenDevices},
    });
    constexpr int64_t kPageable = 0;
    Rows rows(db_, "CUPTI_ACTIVITY_KIND_MEMCPY",
              {"start", "end", "deviceId", "bytes", "globalPid", "copyKind", "srcKind", "dstKind"});
    while (rows.next()) {
      CopyKind kind = CopyKind::kOther;
      for (const auto& [number, copy_kind] : kKinds)
        if (number == rows.whole(5)) kind = copy_kind;
      const int host = kind == CopyKind::kHostToDevice ? 6 : 7;
      const bool to_host = kind == CopyKind::kHostToDevice || kind == CopyKind::kDeviceToHost;
      add_copy(rows, kind, to_host && !rows.null(host) && rows.whole(host) == kPageable);
    }
    for (Rows fills(db_, "CUPTI_ACTIVITY_KIND_MEMSET",
                    {"start", "end", "deviceId", "bytes", "globalPid"});
         fills.next();)
      add_copy(fills, CopyKind::kFill, false);
  }

  void add_copy(const Rows& rows, CopyKind kind, bool pageable) {
    Timeline* const t = known(rows.whole(4));
    if (t == nullptr) return;
    Copy copy;
    copy.start_ns = rows.whole(0);
    copy.end_ns = std::max(rows.whole(1), copy.start_ns);
    copy.device = rows.small(2);
    copy.bytes = static_cast<uint64_t>(rows.whole(3));
    copy.kind = kind;
    copy.pageable = pageable;
    t->copies.push_back(copy);
  }

  // What hardware counters said of the whole GPU between the first kernel and the last, sampled at
  // even times (--gpu-metrics-devices): beside HFU, which rests on other counts.
  void read_gpu_metrics() {
    constexpr int64_t kGpu = 0xff;  // of typeId
    constexpr auto kShown = std::to_array<std::pair<std::string_view, std::string_view>>({
        {"SMs Active", "multiprocessors active"},
        {"SM Active", "multiprocessors active"},
        {"Tensor Active", "tensor cores active"},
    });
    std::map<int64_t, std::string_view> names;
    for (Rows rows(db_, "TARGET_INFO_GPU_METRICS", {"metricId", "metricName"}); rows.next();)
      for (const auto& [begin, shown] : kShown)
        if (rows.text(1).starts_with(begin)) names[rows.whole(0)] = shown;
    if (names.empty()) return;
    int64_t first = INT64_MAX, last = INT64_MIN;
    for (const Timeline& t : processes_)
      for (const Kernel& kernel : t.kernels) {
        first = std::min(first, kernel.start_ns);
        last = std::max(last, kernel.end_ns);
      }
    struct Mean {
      int64_t sum = 0, samples = 0;
    };
    std::map<int64_t, std::map<std::string_view, Mean>> gpus;
    Rows rows(db_, "GPU_METRICS", {"timestamp", "typeId", "metricId", "value"});
    while (rows.next()) {
      const auto name = names.find(rows.whole(2));
      const int64_t percent = rows.whole(3);
      if (name == names.end() || rows.whole(0) < first || rows.whole(0) > last || percent < 0 ||
          percent > 100)
        continue;
      Mean& mean = gpus[rows.whole(1) & kGpu][name->second];
      mean.sum += percent;
      ++mean.samples;
    }
    for (const auto& [gpu, means] : gpus) {
      std::string message =
          "sampled from the first kernel to the last, GPU " + std::to_string(gpu) + ":";
      for (const auto& [name, mean] : means) {
        const int64_t tenths = (mean.sum * 10 + mean.samples / 2) / mean.samples;
        message.append(&mean == &means.begin()->second ? " " : ", ").append(name);
        message += " " + std::to_string(tenths / 10) + "." + std::to_string(tenths % 10) + " % (" +
                   std::to_string(mean.samples) + " samples)";
      }
      for (Timeline& t : processes_) t.say("import.gpu_metrics", message);
    }
  }

  // Times are counted from the start of the recording.
  void read_start() {
    Rows rows(db_, "TARGET_INFO_SESSION_START_TIME", {"utcEpochNs"});
    if (!rows.next() || rows.null(0)) return;
    for (Timeline& t : processes_) t.realtime_offset_ns = rows.whole(0);
  }

  const Database db_;
  std::deque<Timeline>& processes_;
  std::map<int64_t, Timeline*> by_process_;
  std::unordered_map<int64_t, std::string> strings_;
  std::map<std::pair<int64_t, int64_t>, std::string> domains_;  // by process and number
};

}  // namespace

std::string read_nsight_systems(const std::string& file, std::deque<Timeline>& processes) {
  try {
    return Report(file, processes).read();
  } catch (const Unreadable& why) {
    return why.what();
  }
}

}  // namespace flopinj::import
