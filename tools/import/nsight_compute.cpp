#include <collector/ranges/range_name.h>
#include <import/counters.h>
#include <import/nsight_compute.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <optional>
#include <utility>

namespace flopinj::import {
namespace {

// Launches are so far apart, in a time that only orders them.
constexpr int64_t kApart = 1000;
constexpr size_t kMostMetrics = 4096;  // names of the long form that are remembered

bool is_digit(char c) { return c >= '0' && c <= '9'; }

template <class Number>
void read_into(Number& number, std::string_view text) {
  Number value{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error == std::errc{}) number = value;
}

// "(128, 1, 1)"; false where it is none.
bool read_triple(std::string_view text, std::array<uint32_t, 3>& to) {
  std::array<uint32_t, 3> read{};
  for (uint32_t& number : read) {
    const size_t at = text.find_first_of("0123456789");
    if (at == text.npos) return false;
    text.remove_prefix(at);
    read_into(number, text);
    text.remove_prefix(std::min(text.find_first_not_of("0123456789"), text.size()));
  }
  to = read;
  return true;
}

// "Kbyte" is 1,000 bytes, and "Ginst" 10^9 instructions.
double scale_of(std::string_view unit) {
  constexpr std::string_view kPrefixes = "KMGTP";
  const size_t prefix = unit.size() < 2 ? kPrefixes.npos : kPrefixes.find(unit.front());
  if (prefix == kPrefixes.npos || unit[1] < 'a' || unit[1] > 'z') return 1;
  return std::pow(1000.0, static_cast<double>(prefix + 1));
}

// Digits, with marks between them; "n/a", "nan" and names are none.
bool may_be_number(std::string_view text) {
  return !text.empty() && (is_digit(text.front()) || text.front() == '-' || text.front() == '+') &&
         std::ranges::any_of(text, is_digit) && std::ranges::all_of(text, [](char c) {
           return is_digit(c) || (c & 0x80) != 0 ||
                  std::string_view("+-.,' eE").find(c) != std::string_view::npos;
         });
}

// `decimal` is behind the whole part; ',' or '.', the other one, is between thousands, as are
// spaces and other bytes.
std::optional<double> number_of(std::string_view text, char decimal) {
  const char between = decimal == '.' ? ',' : '.';
  std::string plain;
  std::optional<size_t> digits;  // since the last mark between thousands
  bool fraction = false;
  for (const char c : text) {
    if (c == decimal || c == between) {
      if (fraction || (digits && *digits != 3)) return std::nullopt;
      fraction = c == decimal;
      digits = fraction ? std::nullopt : std::optional<size_t>(0);
      if (fraction) plain += '.';
    } else if (is_digit(c)) {
      plain += c;
      if (digits) ++*digits;
    } else if (c == '-' || c == '+' || c == 'e' || c == 'E') {
      if (c != '+' || !plain.empty()) plain += c;
    }
  }
  if (digits && *digits != 3) return std::nullopt;
  double value = 0;
  const auto [end, error] = std::from_chars(plain.data(), plain.data() + plain.size(), value);
  if (error != std::errc{} || end != plain.data() + plain.size() || !std::isfinite(value))
    return std::nullopt;
  return value;
}

bool is_whole(double value) { return std::isnan(value) || value == std::floor(value); }

// A file may begin with a mark that it is UTF-8.
constexpr std::string_view kUtf8 = "\xef\xbb\xbf";

bool is_heading(std::string_view line) {
  if (line.starts_with(kUtf8)) line.remove_prefix(kUtf8.size());
  return (line.starts_with("\"ID\",") || line.starts_with("ID,")) &&
         line.find("Kernel Name") != line.npos;
}

}  // namespace

bool is_nsight_compute(std::string_view first) {
  if (first.starts_with("==PROF==") || first.starts_with("==WARNING==")) return true;
  while (!first.empty()) {
    const size_t end = first.find('\n');
    // The heading's last columns may be behind these bytes.
    if (is_heading(first.substr(0, end))) return true;
    if (end == first.npos) return false;
    first.remove_prefix(end + 1);
  }
  return false;
}

NsightCompute::Meaning NsightCompute::meaning_of(std::string_view heading) {
  struct Known {
    std::string_view heading;
    Kind kind;
  };
  static constexpr auto kKnown = std::to_array<Known>({
      {"ID", Kind::kId},
      {"Process ID", Kind::kProcess},
      {"Process Name", Kind::kNothing},
      {"Host Name", Kind::kNothing},
      {"Kernel Name", Kind::kKernel},
      {"Kernel Time", Kind::kNothing},
      {"Context", Kind::kContext},
      {"Stream", Kind::kStream},
      {"Block Size", Kind::kBlock},
      {"Grid Size", Kind::kGrid},
      {"Device", Kind::kDevice},
      {"CC", Kind::kCapability},
      {"Section Name", Kind::kNothing},
      {"Metric Name", Kind::kMetricName},
      {"Metric Unit", Kind::kMetricUnit},
      {"Metric Value", Kind::kMetricValue},
      {"device__attribute_display_name", Kind::kDeviceName},
      {"device__attribute_multiprocessor_count", Kind::kMultiprocessors},
      {"launch__registers_per_thread", Kind::kRegisters},
      {"launch__shared_mem_per_block_static", Kind::kStaticShared},
      {"launch__shared_mem_per_block_dynamic", Kind::kDynamicShared},
  });
  const auto known = std::ranges::find(kKnown, heading, &Known::heading);
  if (known != kKnown.end()) return {known->kind, {}};
  if (heading.find("Push/Pop_Range") != heading.npos) return {Kind::kRanges, {}};
  std::string counter = counter_name(heading);
  return {counter.empty() ? Kind::kOther : Kind::kCounter, std::move(counter)};
}

// Fields may be quoted, with a quote in them doubled.
void NsightCompute::split(std::string_view line) {
  fields_.clear();
  std::string field;
  bool quoted = false;
  for (size_t i = 0; i < line.size(); ++i) {
    const char c = line[i];
    if (c == '"' && quoted && i + 1 < line.size() && line[i + 1] == '"') {
      field += c;
      ++i;
    } else if (c == '"') {
      quoted = !quoted;
    } else if (c == ',' && !quoted) {
      fields_.push_back(std::exchange(field, {}));
    } else {
      field += c;
    }
  }
  fields_.push_back(std::move(field));
}

void NsightCompute::line(std::string_view text) {
  if (text.ends_with('\r')) text.remove_suffix(1);
  if (is_heading(text)) {
    if (text.starts_with(kUtf8)) text.remove_prefix(kUtf8.size());
    split(text);
    return read_heading();
  }
  if (columns_.empty() || text.empty() || (text.front() != '"' && !is_digit(text.front()))) return;
  split(text);
  if (fields_.size() != columns_.size()) {
    if (text.front() == '"') ++unreadable_;
    return;
  }
  if (!long_ && !units_read_ && fields_.front().empty()) {
    units_ = fields_;
    units_read_ = true;
  } else if (std::ranges::all_of(fields_.front(), is_digit)) {
    read_row();
  }
}

// ncu prints one for each of several programs.
void NsightCompute::read_heading() {
  finish_row();
  columns_.clear();
  for (const std::string& heading : fields_) columns_.push_back(meaning_of(heading));
  long_ = std::ranges::count(columns_, Kind::kMetricName, &Meaning::kind) != 0;
  // Behind the value are the words of ncu's rules.
  if (long_)
    for (Meaning& column : columns_)
      if (column.kind == Kind::kOther || column.kind == Kind::kCounter) column = {};
  units_.assign(columns_.size(), "");
  units_read_ = false;
}

std::string_view NsightCompute::cell(Kind kind) const {
  const auto at = std::ranges::find(columns_, kind, &Meaning::kind);
  return at == columns_.end() ? std::string_view()
                              : fields_[static_cast<size_t>(at - columns_.begin())];
}

void NsightCompute::read_row() {
  const std::string_view id = cell(Kind::kId), process = cell(Kind::kProcess);
  if (!long_ || !row_.any || row_.id != id || row_.process != process) {
    finish_row();
    row_.any = true;
    row_.id = id;
    row_.process = process;
    row_.kernel = cell(Kind::kKernel);
    row_.ranges = cell(Kind::kRanges);
    row_.capability = cell(Kind::kCapability);
    row_.grid = cell(Kind::kGrid);
    row_.block = cell(Kind::kBlock);
    read_into(row_.stream.device, cell(Kind::kDevice));
    read_into(row_.stream.context, cell(Kind::kContext));
    read_into(row_.stream.stream, cell(Kind::kStream));
  }
  if (!long_) {
    for (size_t i = 0; i < columns_.size(); ++i)
      if (columns_[i].kind > Kind::kMetricValue) take(columns_[i], units_[i], fields_[i]);
    return;
  }
  const std::string name(cell(Kind::kMetricName));
  auto known = metrics_.find(name);
  if (known == metrics_.end()) {
    if (metrics_.size() >= kMostMetrics) return;
    known = metrics_.emplace(name, meaning_of(name)).first;
  }
  take(known->second, cell(Kind::kMetricUnit), cell(Kind::kMetricValue));
}

NsightCompute::Written NsightCompute::read_number(std::string_view text) {
  if (!may_be_number(text)) return {};
  const auto point = number_of(text, '.'), comma = number_of(text, ',');
  if (!point && !comma) return {};
  point_fits_ = point_fits_ && point;
  comma_fits_ = comma_fits_ && comma;
  return {point.value_or(kNone), comma.value_or(kNone)};
}

void NsightCompute::take(const Meaning& meaning, std::string_view unit, std::string_view value) {
  const auto whole = [&](uint32_t& number) {
    const Written written = read_number(value);
    const double scaled = written.point * scale_of(unit);
    if (scaled >= 0 && scaled < UINT32_MAX) number = static_cast<uint32_t>(scaled);
  };
  switch (meaning.kind) {
    case Kind::kCounter: {
      Written number = read_number(value);
      const double scale = scale_of(unit);
      if (!counts_work(meaning.counter)) {
        number.point *= scale;
        number.comma *= scale;
      } else if (scale != 1) {
        // Two digits behind the point are all that is left of it.
        ++rounded_;
        return;
      } else {
        counts_by_point_ = counts_by_point_ && is_whole(number.point);
        counts_by_comma_ = counts_by_comma_ && is_whole(number.comma);
      }
      row_.counters.emplace_back(meaning.counter, number);
      return;
    }
    case Kind::kOther:
      read_number(value);
      return;
    case Kind::kDeviceName:
      row_.device_name = value;
      return;
    case Kind::kMultiprocessors:
      return whole(row_.multiprocessors);
    case Kind::kRegisters:
      return whole(row_.shape.registers);
    case Kind::kStaticShared:
      return whole(row_.shape.static_shared_bytes);
    case Kind::kDynamicShared:
      return whole(row_.shape.launch.dynamic_shared_bytes);
    default:
      return;
  }
}

// `16648  "<default domain>:outer:none:none:none:none:none:none"  "CCCL:inner:none: ..." `: the
// thread, and its ranges from the outermost one on, each with its domain in front and five facts of
// its payload and colour and its message behind.
void NsightCompute::enter_ranges(Process& process, uint32_t thread, std::string_view ranges) {
  constexpr std::string_view kBehind = ":none:none:none:none:none:none";
  Timeline& t = *process.timeline;
  std::vector<std::string_view> written;
  for (size_t begin = ranges.find('"'); begin != ranges.npos;) {
    size_t end = ranges.find("\" ", begin + 1);
    if (end == ranges.npos) end = ranges.rfind('"');
    if (end <= begin) break;
    written.push_back(ranges.substr(begin + 1, end - begin - 1));
    begin = ranges.find('"', end + 1);
  }
  std::vector<Open>& open = process.open[thread];
  size_t same = 0;
  while (same < open.size() && same < written.size() && open[same].written == written[same]) ++same;
  for (; open.size() > same; open.pop_back()) t.ranges[open.back().range].end_ns = now_ - 1;
  std::string key;
  for (; same < written.size(); ++same) {
    std::string_view name = written[same];
    const size_t colon = name.find(':');
    const std::string_view domain = name.substr(0, colon);
    name.remove_prefix(colon == name.npos ? name.size() : colon + 1);
    // Others have a colour or a payload there, which has no colon.
    if (name.ends_with(kBehind))
      name.remove_suffix(kBehind.size());
    else
      for (int fact = 0; fact < 6 && name.rfind(':') != name.npos; ++fact)
        name = name.substr(0, name.rfind(':'));
    Range range;
    range.start_ns = now_;
    range.end_ns = Range::kStillOpen;
    range.sequence_plus_1 = parse_range_name(name, key) & Range::kMostSequence;
    const Name named{t.texts.id(key), domain == "<default domain>" ? 0 : t.texts.id(domain)};
    range.name = t.names.index(named, named);
    range.thread = thread & Range::kMostThreads;
    range.order = static_cast<uint32_t>(t.ranges.size());
    open.push_back({std::string(written[same]), range.order});
    t.ranges.push_back(range);
  }
}

void NsightCompute::finish_row() {
  Row row = std::exchange(row_, {});
  if (!row.any) return;
  Process& process = by_id_[row.process];
  if (process.timeline == nullptr) {
    process.timeline = &processes_.emplace_back();
    process.timeline->only_order = true;
    read_into(process.timeline->process.pid, row.process);
  }
  Timeline& t = *process.timeline;
  now_ += kApart;
  uint32_t thread_id = 0;
  read_into(thread_id, row.ranges);
  const uint32_t thread = t.thread(t.process.pid, thread_id);
  enter_ranges(process, thread, row.ranges);

  DeviceInfo& device = t.devices[row.stream.device];
  read_into(device.compute_major, row.capability);
  if (const size_t point = row.capability.find('.'); point != row.capability.npos)
    read_into(device.compute_minor, std::string_view(row.capability).substr(point + 1));
  device.chip = chip_of(device.compute_major, device.compute_minor);
  if (!row.device_name.empty()) device.name = row.device_name;
  if (row.multiprocessors != 0) device.multiprocessors = row.multiprocessors;

  Call call;
  call.correlation = t.kernels.size() + 1;
  call.start_ns = now_;
  call.thread = thread;
  t.calls.push_back(call);
  Kernel kernel;
  kernel.correlation = call.correlation;
  kernel.start_ns = now_;
  kernel.end_ns = now_ - 1;
  kernel.name = t.texts.id(row.kernel);
  kernel.stream = t.streams.index(row.stream, row.stream);
  const bool shaped = read_triple(row.grid, row.shape.launch.grid) &&
                      read_triple(row.block, row.shape.launch.block);
  kernel.shape = shaped ? t.shapes.index(row.shape.key(), row.shape) : Kernel::kNotKnown;
  const auto index = static_cast<uint32_t>(t.kernels.size());
  t.kernels.push_back(kernel);
  for (const auto& [name, number] : row.counters)
    cells_.push_back({&t, index, t.metric(name), number});
}

// Which mark is the decimal one: that which all numbers fit, and of both the one by which counts
// are whole. Empty: it is known.
std::string NsightCompute::decide_marks() {
  if (point_fits_ && comma_fits_ && counts_by_point_ != counts_by_comma_)
    (counts_by_point_ ? comma_fits_ : point_fits_) = false;
  if (point_fits_) return {};
  return comma_fits_ ? std::string()
                     : "its numbers are of two languages: print it again with LC_ALL=C ncu";
}

// What no device of the file has counters for; empty where one has all.
std::string NsightCompute::lacking() const {
  std::string lacks;
  for (const Timeline& t : processes_)
    for (const auto& [ordinal, device] : t.devices) {
      const std::vector<std::string> needed = instruction_counters(device);
      const auto missing = std::ranges::find_if(needed, [&](const std::string& name) {
        return std::ranges::find(t.metrics, name) == t.metrics.end();
      });
      if (missing == needed.end()) return {};
      lacks = *missing;
    }
  return lacks;
}

std::string NsightCompute::finish() {
  finish_row();
  if (columns_.empty())
    return "it has no table of ncu's: ncu --import REPORT --csv --page raw prints one";
  if (processes_.empty()) return "no kernel is in it";
  if (std::string problem = decide_marks(); !problem.empty()) return problem;
  if (const std::string lacks = lacking(); !lacks.empty())
    return rounded_ != 0 ? "its counts are rounded (Ginst, Minst): add --print-units base to ncu"
                         : "it has no " + lacks +
                               ", which FLOP need: docs/without-a-gpu.md names all that ncu has "
                               "to read";
  for (Timeline& t : processes_) {
    t.counted.resize(t.kernels.size());
    for (uint32_t i = 0; i < t.counted.size(); ++i)
      t.counted[i] = {i, std::vector<double>(t.metrics.size(), kNone)};
    t.process.counters = t.process.measures = true;
    t.say("import.counters",
          "Nsight Compute runs kernels one by one, and has no times of them as they run. "
          "--counters gives their counters to a recording of torch.profiler or Nsight Systems");
  }
  for (const Cell& cell : cells_)
    cell.process->counted[cell.kernel].values[cell.metric] =
        point_fits_ ? cell.number.point : cell.number.comma;
  if (unreadable_ != 0)
    processes_.front().warn("import.unreadable",
                            "lines of the file could not be read and are left out", unreadable_);
  if (rounded_ != 0)
    processes_.front().warn("import.rounded",
                            "counts that are rounded (Ginst, Minst) are left out: add "
                            "--print-units base to ncu",
                            rounded_);
  return {};
}

}  // namespace flopinj::import
