#include <import/counters.h>
#include <import/json_text.h>
#include <import/operator_text.h>
#include <import/torch_profiler.h>

#include <algorithm>
#include <array>
#include <iterator>
#include <limits>
#include <set>
#include <utility>

namespace flopinj::import {
namespace {

char lower(char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; }
bool same_word(std::string_view a, std::string_view b) {
  return std::ranges::equal(a, b, {}, lower, lower);
}

template <class Number>
void set(Number& number, std::string_view value) {
  if (const auto whole = json_whole(value); whole && *whole >= 0)
    number = static_cast<Number>(*whole);
}

void three_numbers(std::string_view list, std::array<uint32_t, 3>& to) {
  size_t at = 0;
  json_elements(list, [&](std::string_view number) {
    if (at < to.size()) set(to[at++], number);
    return at < to.size();
  });
}

}  // namespace

struct TorchProfiler::Event {
  std::string_view phase, category, name, process, thread, start, duration, arguments;

  // The value of an argument; empty where there is none.
  std::string_view argument(std::string_view key) const {
    std::string_view found;
    json_members(arguments, [&](std::string_view member, std::string_view value) {
      if (member != key) return true;
      found = value;
      return false;
    });
    return found;
  }
};

TorchProfiler::Take TorchProfiler::taker_of(std::string_view category) {
  struct Category {
    std::string_view name;
    Take take;
  };
  using T = TorchProfiler;
  static constexpr auto kCategories = std::to_array<Category>({
      {"cpu_op", &T::take_operator},
      {"operator", &T::take_operator},  // PyTorch 1.8
      {"kernel", &T::take_kernel},
      {"runtime", &T::take_call},
      {"python_function", &T::take_python},
      {"user_annotation", &T::take_range},
      {"gpu_memcpy", &T::take_copy},
      {"memcpy", &T::take_copy},
      {"gpu_memset", &T::take_fill},
      {"memset", &T::take_fill},
      {"cuda_profiler_range", &T::take_counters},
  });
  const auto found = std::ranges::find_if(
      kCategories, [&](const Category& c) { return same_word(c.name, category); });
  if (found != kCategories.end()) return found->take;
  // Each vendor's API has its own: "cuda_runtime", "cuda_driver", "hip_runtime", "xpu_runtime".
  const bool api = category.ends_with("_runtime") || category.ends_with("_driver");
  return api ? &T::take_call : nullptr;
}

void TorchProfiler::event(std::string_view text) {
  Event e;
  bool wanted = true;
  const bool whole = json_members(text, [&](std::string_view name, std::string_view value) {
    if (name == "ph") {
      e.phase = value;
      wanted = value == "\"X\"" || value == "\"M\"";  // flows and instants are a third of all
    } else if (name == "cat") {
      e.category = json_string(value, buffer_);
    } else if (name == "name") {
      e.name = value;
    } else if (name == "pid") {
      e.process = value;
    } else if (name == "tid") {
      e.thread = value;
    } else if (name == "ts") {
      e.start = value;
    } else if (name == "dur") {
      e.duration = value;
    } else if (name == "args") {
      e.arguments = value;
    }
    return wanted;
  });
  if (!wanted) return;
  if (!whole) return unreadable();
  if (e.phase == "\"M\"") return take_name(e);
  const Take take = taker_of(e.category);
  if (take == nullptr) return;
  ++events_;
  e.name = json_string(e.name, name_);
  (this->*take)(e);
}

bool TorchProfiler::times(const Event& e, int64_t& start_ns, int64_t& end_ns) {
  const auto start = json_microseconds(e.start, finer_);
  const auto duration =
      e.duration.empty() ? std::optional<int64_t>(0) : json_microseconds(e.duration, finer_);
  if (!start || !duration || *duration < 0) {
    unreadable();
    return false;
  }
  start_ns = *start;
  end_ns = *start + *duration;
  return true;
}

void TorchProfiler::add_range(const Event& e, uint32_t text, uint64_t sequence_plus_1) {
  Range range;
  const auto process = json_whole(e.process), thread = json_whole(e.thread);
  if (!process || !thread || !times(e, range.start_ns, range.end_ns)) return;
  range.sequence_plus_1 = sequence_plus_1 & Range::kMostSequence;
  const uint32_t index = t_.thread(*process, *thread);
  if (index >= Range::kMostThreads) return unreadable();
  range.thread = index & Range::kMostThreads;
  range.name = t_.names.index({text, 0}, {text, 0});
  range.order = static_cast<uint32_t>(t_.ranges.size());
  t_.ranges.push_back(range);
}

void TorchProfiler::take_range(const Event& e) { add_range(e, t_.texts.id(e.name), 0); }

void TorchProfiler::take_operator(const Event& e) {
  OperatorArguments arguments;
  uint64_t sequence_plus_1 = 0;
  json_members(e.arguments, [&](std::string_view name, std::string_view value) {
    if (name == "Input Dims" || name == "Input dims") {
      arguments.dims = value;
    } else if (name == "Input type") {
      arguments.types = value;
    } else if (name == "Concrete Inputs") {
      arguments.concrete = value;
    } else if (name == "Collective name") {
      arguments.collective = value;
    } else if (name == "In msg nelems") {
      arguments.in_elements = value;
    } else if (name == "Out msg nelems") {
      arguments.out_elements = value;
    } else if (name == "dtype") {
      arguments.element = value;
    } else if (name == "Group size") {
      arguments.ranks = value;
    } else if (name == "Sequence number") {
      const auto number = json_whole(value);
      if (number && *number >= 0) sequence_plus_1 = static_cast<uint64_t>(*number) + 1;
    }
    return true;
  });
  write_operator(e.name, arguments, text_);
  add_range(e, t_.texts.id(text_), sequence_plus_1);
}

// Of Python's functions the calls of modules.
void TorchProfiler::take_python(const Event& e) {
  if (e.name.starts_with("nn.Module: ")) take_range(e);
}

void TorchProfiler::take_call(const Event& e) {
  Call call;
  int64_t end_ns = 0;
  const auto process = json_whole(e.process), thread = json_whole(e.thread);
  const auto correlation = json_whole(e.argument("correlation"));
  if (!process || !thread || !correlation || *correlation <= 0 || !times(e, call.start_ns, end_ns))
    return;
  call.correlation = static_cast<uint64_t>(*correlation);
  call.thread = t_.thread(*process, *thread);
  call.graph = e.name.find("GraphLaunch") != e.name.npos;
  call.kernel = e.name.find("LaunchKernel") != e.name.npos;
  t_.calls.push_back(call);
}

void TorchProfiler::take_kernel(const Event& e) {
  Kernel kernel;
  if (!times(e, kernel.start_ns, kernel.end_ns)) return;
  Stream stream;
  Shape shape;
  set(stream.device, e.process);
  set(stream.stream, e.thread);
  json_members(e.arguments, [&](std::string_view name, std::string_view value) {
    if (name == "correlation")
      set(kernel.correlation, value);
    else if (name == "device")
      set(stream.device, value);
    else if (name == "context")
      set(stream.context, value);
    else if (name == "stream")
      set(stream.stream, value);
    else if (name == "grid")
      three_numbers(value, shape.launch.grid);
    else if (name == "block")
      three_numbers(value, shape.launch.block);
    else if (name == "registers per thread")
      set(shape.registers, value);
    else if (name == "shared memory")
      set(shape.launch.dynamic_shared_bytes, value);
    return true;
  });
  kernel.name = t_.texts.id(e.name);
  kernel.stream = t_.streams.index(stream, stream);
  kernel.shape = t_.shapes.index(shape.key(), shape);
  t_.kernels.push_back(kernel);
}

void TorchProfiler::add_copy(const Event& e, CopyKind kind, bool pageable) {
  Copy copy;
  if (!times(e, copy.start_ns, copy.end_ns)) return;
  set(copy.device, e.process);
  json_members(e.arguments, [&](std::string_view name, std::string_view value) {
    if (name == "device")
      set(copy.device, value);
    else if (name == "bytes")
      set(copy.bytes, value);
    return true;
  });
  copy.kind = kind;
  copy.pageable = pageable;
  t_.copies.push_back(copy);
}

// "Memcpy HtoD (Pageable -> Device)", and older AMD's "CopyHostToDevice"
void TorchProfiler::take_copy(const Event& e) {
  struct Direction {
    std::string_view letters;
    CopyKind kind;
  };
  constexpr auto kDirections = std::to_array<Direction>({
      {"HtoD", CopyKind::kHostToDevice},
      {"DtoH", CopyKind::kDeviceToHost},
      {"DtoD", CopyKind::kWithinDevice},
      {"PtoP", CopyKind::kBetweenDevices},
      {"HtoH", CopyKind::kHostToHost},
      {"HostToDevice", CopyKind::kHostToDevice},
      {"DeviceToHost", CopyKind::kDeviceToHost},
      {"DeviceToDevice", CopyKind::kWithinDevice},
  });
  const auto found = std::ranges::find_if(
      kDirections, [&](const Direction& d) { return e.name.find(d.letters) != e.name.npos; });
  add_copy(e, found == kDirections.end() ? CopyKind::kOther : found->kind,
           e.name.find("Pageable") != e.name.npos);
}

void TorchProfiler::take_fill(const Event& e) { add_copy(e, CopyKind::kFill, false); }

// "thread 4037 (pt_autograd_0)": in brackets what the operating system calls it.
void TorchProfiler::take_name(const Event& e) {
  const auto process = json_whole(e.process), thread = json_whole(e.thread);
  if (json_string(e.name, name_) != "thread_name" || !process || !thread) return;
  const std::string_view text = json_string(e.argument("name"), buffer_);
  const size_t open = text.find('('), close = text.rfind(')');
  if (open == text.npos || close == text.npos || close < open) return;
  t_.threads[t_.thread(*process, *thread)].name = text.substr(open + 1, close - open - 1);
}

// Kineto's range profiler replays kernels one by one and makes up when they ran; the names it has
// of some are "__missing__".
void TorchProfiler::take_counters(const Event& e) {
  int64_t end_ns = 0;
  Counters counters;
  if (!times(e, counters.start_ns, end_ns)) return;
  counters.name = t_.texts.id(e.name == "__missing__" ? "(kernel without a name)" : e.name);
  json_members(e.arguments, [&](std::string_view name, std::string_view value) {
    const auto number = json_number(value);
    const std::string metric = counter_name(name);
    if (!number || metric.empty()) return true;
    const uint32_t at = t_.metric(metric);
    counters.values.resize(t_.metrics.size(), std::numeric_limits<double>::quiet_NaN());
    counters.values[at] = *number;
    return true;
  });
  counters_.push_back(std::move(counters));
}

// The first range is of the first launch, and so on, where there are as many.
void TorchProfiler::join_counters() {
  if (counters_.empty()) return;
  std::vector<Call> launches;
  std::ranges::copy_if(t_.calls, std::back_inserter(launches), &Call::kernel);
  if (launches.size() != counters_.size())
    return t_.warn(
        "import.counters",
        std::to_string(counters_.size()) + " ranges of counters and " +
            std::to_string(launches.size()) +
            " launches: which belong together is not known, and the counters are left out");
  std::ranges::stable_sort(counters_, {}, &Counters::start_ns);
  std::ranges::stable_sort(launches, {}, &Call::start_ns);
  for (size_t i = 0; i < counters_.size(); ++i) {
    Kernel kernel;
    kernel.correlation = launches[i].correlation;
    kernel.end_ns = -1;
    kernel.name = counters_[i].name;
    kernel.shape = Kernel::kNotKnown;
    kernel.stream = t_.streams.index({}, {});
    counters_[i].values.resize(t_.metrics.size(), std::numeric_limits<double>::quiet_NaN());
    t_.counted.push_back(
        {static_cast<uint32_t>(t_.kernels.size()), std::move(counters_[i].values)});
    t_.kernels.push_back(kernel);
  }
  t_.process.counters = t_.process.measures = true;
}

void TorchProfiler::take_devices(std::string_view list) {
  json_elements(list, [&](std::string_view properties) {
    DeviceInfo info;
    int64_t id = -1;
    json_members(properties, [&](std::string_view name, std::string_view value) {
      if (name == "id")
        id = json_whole(value).value_or(-1);
      else if (name == "name")
        info.name = json_string(value, buffer_);
      else if (name == "totalGlobalMem")
        set(info.memory_bytes, value);
      else if (name == "computeMajor")
        set(info.compute_major, value);
      else if (name == "computeMinor")
        set(info.compute_minor, value);
      else if (name == "numSms")
        set(info.multiprocessors, value);
      return true;
    });
    info.chip = chip_of(info.compute_major, info.compute_minor);
    if (id >= 0 && id < UINT32_MAX) t_.devices[static_cast<uint32_t>(id)] = info;
    return true;
  });
}

void TorchProfiler::member(std::string_view name, std::string_view value) {
  if (name == "deviceProperties") {
    take_devices(value);
  } else if (name == "distributedInfo") {
    json_members(value, [&](std::string_view key, std::string_view number) {
      if (key == "rank") set(t_.process.rank, number);
      if (key == "world_size") set(t_.process.world_size, number);
      return true;
    });
    if (t_.process.rank >= 0) t_.process.rank_source = "distributedInfo";
  } else if (name == "baseTimeNanoseconds") {
    set(t_.realtime_offset_ns, value);
  } else if (name == "cupti_version") {
    set(t_.process.cupti_version, value);
  } else if (name == "cuda_driver_version") {
    set(t_.process.driver_version, value);
  }
}

std::string TorchProfiler::finish() {
  if (events_ == 0)
    return "it is JSON, and has no event of torch.profiler's on a GPU: profile with "
           "ProfilerActivity.CUDA, "
           "and let export_chrome_trace() write the whole file";
  if (!finer_) t_.unit_ns = 1000;
  join_counters();
  // The properties are of all devices of the machine; those that the process used are its own.
  std::set<uint32_t> used;
  for (const Kernel& k : t_.kernels) used.insert(t_.streams[k.stream].device);
  for (const Copy& c : t_.copies) used.insert(c.device);
  std::erase_if(t_.devices, [&](const auto& device) { return !used.contains(device.first); });
  for (const uint32_t device : used) t_.devices.try_emplace(device);
  for (const Thread& thread : t_.threads.all())
    if (thread.process > 1) {
      t_.process.pid = static_cast<uint32_t>(thread.process);
      break;
    }
  if (unreadable_ != 0)
    t_.warn("import.unreadable", "events of the file could not be read and are left out",
            unreadable_);
  if (t_.kernels.empty())
    return "no kernel of a GPU is in it: record with activities=[ProfilerActivity.CPU, "
           "ProfilerActivity.CUDA]";
  return {};
}

}  // namespace flopinj::import
