#include "passes/second_pass.h"

#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <cstdio>
#include <deque>
#include <exception>
#include <map>
#include <mutex>
#include <string>
#include <system_error>
#include <thread>
#include <tuple>
#include <utility>

#include "flop_trace_fields.h"
#include "passes/totals_pass.h"

namespace flopinj::reduce {
namespace {

// A bar on standard error where that is a terminal, for work that takes over a second. Any thread
// may call add().
class Progress {
 public:
  Progress(uint64_t total, bool wanted)
      : total_(std::max<uint64_t>(1, total)),
        wanted_(wanted && ::isatty(STDERR_FILENO) != 0),
        next_(began_ + std::chrono::seconds(1)) {}
  // Clears its line.
  ~Progress() {
    if (shown_) std::fputs("\r\x1b[K", stderr);
  }
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  void add(uint64_t done) {
    constexpr size_t kWidth = 40;
    const std::lock_guard lock(lock_);
    done_ = std::min(total_, done_ + done);
    const auto now = Clock::now();
    if (!wanted_ || now < next_) return;
    next_ = now + std::chrono::milliseconds(100);
    shown_ = true;
    const double part = static_cast<double>(done_) / static_cast<double>(total_);
    const auto filled = static_cast<size_t>(part * static_cast<double>(kWidth));
    const double left = std::chrono::duration<double>(now - began_).count() / part * (1 - part);
    std::fprintf(stderr, "\rreading [%s%s] %3.0f %%, %.0f s left\x1b[K",
                 std::string(filled, '#').c_str(), std::string(kWidth - filled, ' ').c_str(),
                 100 * part, left);
  }

 private:
  using Clock = std::chrono::steady_clock;
  std::mutex lock_;
  uint64_t total_, done_ = 0;
  bool wanted_, shown_ = false;
  Clock::time_point began_ = Clock::now(), next_;
};

// Appends the times of segments in their order, whoever is done first.
class TimesInOrder {
 public:
  TimesInOrder(const TraceTables& tables, const std::vector<Segment>& segments, size_t most_ahead)
      : tables_(tables), segments_(segments), most_ahead_(most_ahead) {}

  // Returns when so few segments are ahead of the one to be appended next that their times may be
  // kept. False: no more segments are to be read.
  bool wait_for_turn(size_t segment) {
    std::unique_lock lock(lock_);
    appended_more_.wait(lock, [&] { return stopped_ || segment < appended_ + most_ahead_; });
    return !stopped_;
  }
  void append(size_t segment, SegmentTimes times) {
    const std::lock_guard lock(lock_);
    waiting_.emplace(segment, std::move(times));
    for (auto next = waiting_.find(appended_); next != waiting_.end();
         next = waiting_.find(appended_)) {
      append_next(next->second);
      waiting_.erase(next);
    }
    appended_more_.notify_all();
  }
  void stop() {
    const std::lock_guard lock(lock_);
    stopped_ = true;
    appended_more_.notify_all();
  }
  std::map<uint32_t, BusyTime>& busy() { return busy_; }  // by device

 private:
  void append_next(const SegmentTimes& times) {
    const uint32_t trace = segments_[appended_].trace;
    append_times(tracks_, tables_, trace, times);
    ++appended_;
    if (appended_ == segments_.size() || segments_[appended_].trace != trace)
      for (auto at = tracks_.begin(); at != tracks_.end();) {
        if (tables_.devices[at->first].trace != trace) {
          ++at;
          continue;
        }
        busy_[at->first] = at->second.take();
        at = tracks_.erase(at);
      }
  }

  const TraceTables& tables_;
  const std::vector<Segment>& segments_;
  const size_t most_ahead_;
  std::mutex lock_;
  std::condition_variable appended_more_;
  std::map<size_t, SegmentTimes> waiting_;
  size_t appended_ = 0;
  bool stopped_ = false;
  SegmentTimes tracks_;
  std::map<uint32_t, BusyTime> busy_;
};

// Threads that take segments until there are none.
class Readers {
 public:
  Readers(SecondPass& pass, unsigned jobs)
      : pass_(pass),
        segments_(pass.segments.all()),
        progress_(bytes_of(segments_), pass.progress),
        times_(pass.shared.tables(), segments_, size_t{2} * jobs) {
    pass.damage_of_file.assign(pass.files.size(), {});
    pass.damage_of_trace.assign(pass.shared.tables().traces.size(), {});
    pass.consumers.clear();
    for (unsigned i = 0; i < jobs; ++i) {
      if (pass.consumer) pass.consumers.push_back(pass.consumer());
      totals_.emplace_back(pass.shared, pass.consumer ? pass.consumers.back().get() : nullptr,
                           !pass.only_consumers);
    }
  }

  void read() {
    std::vector<std::thread> threads;
    try {
      for (size_t i = 1; i < totals_.size(); ++i)
        threads.emplace_back([this, i] { read_segments(i); });
    } catch (const std::system_error&) {  // no more threads can be made: the others do it
    }
    read_segments(0);
    for (auto& thread : threads) thread.join();
    if (failure_) std::rethrow_exception(failure_);
    for (size_t i = 1; i < totals_.size(); ++i) totals_[0].add(totals_[i]);
    while (totals_.size() > 1) totals_.pop_back();
    read_revisions(totals_[0]);
  }
  // A table was too small, and rows without room may differ by the order of the threads.
  bool depends_on_threads() { return totals_[0].full(); }
  Totals take() {
    DamageLog of_nothing;  // without files there is nothing to damage either
    auto& damage = pass_.damage_of_file;
    if (pass_.only_consumers) return {};
    Totals totals = totals_[0].take(damage.empty() ? of_nothing : damage.front());
    for (auto& [device, busy] : times_.busy()) totals.devices[device].busy = std::move(busy);
    return totals;
  }

 private:
  static uint64_t bytes_of(const std::vector<Segment>& segments) {
    uint64_t all = 0;
    for (const auto& segment : segments) all += segment.end - segment.begin;
    return all;
  }

  DamageLog& damage_of(uint32_t trace, uint32_t file) {
    return pass_.shared.tables().traces[trace].has_summary ? pass_.damage_of_trace[trace]
                                                           : pass_.damage_of_file[file];
  }

  bool is_whole(uint32_t trace) const {
    return !pass_.whole_traces.empty() && pass_.whole_traces[trace];
  }
  bool is_read(uint32_t trace) const {
    return pass_.only_traces.empty() || pass_.only_traces[trace];
  }
  // Segments that are read one after another by one thread; none: there are no more.
  std::pair<size_t, size_t> next_turn() {
    const std::lock_guard lock(lock_);
    for (; next_ < segments_.size() && !is_read(segments_[next_].trace); ++next_)
      times_.append(next_, {});
    const size_t begin = next_;
    if (next_ < segments_.size()) ++next_;
    while (next_ < segments_.size() && segments_[next_].trace == segments_[begin].trace &&
           is_whole(segments_[begin].trace))
      ++next_;
    return {begin, next_};
  }

  // False: no more are to be read.
  bool read_segment(size_t thread, size_t number, OpenInput& open) {
    const Segment& segment = segments_[number];
    if (!times_.wait_for_turn(is_whole(segment.trace) ? 0 : number)) return false;
    open.at(*segment.input);
    DamageLog damage;
    LaunchConsumer* const consumer = pass_.consumer ? pass_.consumers[thread].get() : nullptr;
    if (consumer != nullptr) consumer->begin_segment(number);
    SegmentTimes times = totals_[thread].segment(segment, damage);
    if (consumer != nullptr) consumer->end_segment(totals_[thread].rows());
    times_.append(number, std::move(times));
    progress_.add(segment.end - segment.begin);
    const std::lock_guard lock(lock_);
    damage_of(segment.trace, segment.file).add(damage);
    if (consumer != nullptr && !consumer->goes_on()) times_.stop();
    return true;
  }

  void read_segments(size_t thread) noexcept {
    OpenInput open;
    try {
      bool more = true;
      for (auto [at, end] = next_turn(); more && at != end; std::tie(at, end) = next_turn())
        for (; more && at != end; ++at) more = read_segment(thread, at, open);
      totals_[thread].fold_rows();
    } catch (...) {
      const std::lock_guard lock(lock_);
      if (!failure_) failure_ = std::current_exception();
      times_.stop();
    }
  }

  // The recorder may have written newer ones since pass one: they hold all that those did.
  void read_revisions(TotalsPass& totals) {
    OpenInput open;
    for (const auto& place : pass_.revisions.newest()) {
      if (!is_read(place.trace)) continue;
      open.at(*pass_.files[place.file].input);
      DamageLog& damage = damage_of(place.trace, place.file);
      DamageLog framing;
      PacketReader reader(*pass_.files[place.file].input, framing, Batches::kCheck, place.begin,
                          place.end);
      Packet packet;
      if (!reader.next(packet) || !Revisions::open(place, packet))
        damage.add(Damage::kBadFrame);
      else if (packet.body_field ==
               static_cast<uint32_t>(trace_fields::TracePacketField::tally_batch))
        totals.tally(place.trace, packet, damage);
    }
    totals.fold_rows();
  }

  SecondPass& pass_;
  const std::vector<Segment>& segments_;
  Progress progress_;
  TimesInOrder times_;
  std::deque<TotalsPass> totals_;
  std::mutex lock_;
  size_t next_ = 0;
  std::exception_ptr failure_;
};

}  // namespace

Totals SecondPass::run() {
  const size_t most = std::max<size_t>(1, segments.all().size());
  const auto threads = static_cast<unsigned>(std::min<size_t>(std::max(1U, jobs), most));
  {
    Readers readers(*this, threads);
    readers.read();
    depends_on_threads = threads > 1 && readers.depends_on_threads();
    if (!depends_on_threads || !whole_traces.empty()) return readers.take();
  }
  Readers alone(*this, 1);
  alone.read();
  return alone.take();
}

}  // namespace flopinj::reduce
